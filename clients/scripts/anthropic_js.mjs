// npm @anthropic-ai/sdk: its stream helper.
import Anthropic from "@anthropic-ai/sdk";
import { QUESTION, SCHEMA, finish, record } from "./recording.mjs";

const client = new Anthropic({ baseURL: process.env.BASE_URL, apiKey: "any", maxRetries: 0 });
const tools = [{ name: "record", description: "Record.", input_schema: SCHEMA }];
const messages = [{ role: "user", content: QUESTION }];
for (;;) {
  const stream = client.messages.stream({ model: process.env.MODEL, max_tokens: 20000, messages, tools });
  const message = await stream.finalMessage();
  messages.push({ role: "assistant", content: message.content });
  const calls = message.content.filter((block) => block.type === "tool_use");
  if (calls.length === 0) {
    finish(message.content.map((block) => (block.type === "text" ? block.text : "")).join(""));
    break;
  }
  const results = calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: record(call.input) }));
  messages.push({ role: "user", content: results });
}
