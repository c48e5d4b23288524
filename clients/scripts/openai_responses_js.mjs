// npm openai, Responses: its stream helper, the whole conversation sent each time.
import OpenAI from "openai";
import { QUESTION, SCHEMA, finish, record } from "./recording.mjs";

const client = new OpenAI({ baseURL: process.env.BASE_URL + "/v1", apiKey: "any", maxRetries: 0 });
const tools = [{ type: "function", name: "record", description: "Record.", parameters: SCHEMA, strict: false }];
const input = [{ role: "user", content: QUESTION }];
for (;;) {
  const stream = client.responses.stream({ model: process.env.MODEL, input, tools, store: false });
  const response = await stream.finalResponse();
  input.push(...response.output);
  const calls = response.output.filter((item) => item.type === "function_call");
  if (calls.length === 0) {
    finish(response.output_text);
    break;
  }
  for (const call of calls) {
    input.push({ type: "function_call_output", call_id: call.call_id, output: record(JSON.parse(call.arguments)) });
  }
}
