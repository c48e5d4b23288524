// npm ollama: its streaming chat.
import { Ollama } from "ollama";
import { QUESTION, SCHEMA, finish, record } from "./recording.mjs";

const client = new Ollama({ host: process.env.BASE_URL });
const tools = [{ type: "function", function: { name: "record", description: "Record.", parameters: SCHEMA } }];
const messages = [{ role: "user", content: QUESTION }];
for (;;) {
  const calls = [];
  let text = "";
  for await (const part of await client.chat({ model: process.env.MODEL, messages, tools, stream: true })) {
    text += part.message.content ?? "";
    calls.push(...(part.message.tool_calls ?? []));
  }
  messages.push({ role: "assistant", content: text, tool_calls: calls });
  if (calls.length === 0) {
    finish(text);
    break;
  }
  for (const call of calls) {
    messages.push({ role: "tool", content: record(call.function.arguments), tool_name: call.function.name });
  }
}
