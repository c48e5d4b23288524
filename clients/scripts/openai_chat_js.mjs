// npm openai, Chat Completions: runTools with streaming, its own loop over tools.
import OpenAI from "openai";
import { QUESTION, SCHEMA, finish, record } from "./recording.mjs";

const client = new OpenAI({ baseURL: process.env.BASE_URL + "/v1", apiKey: "any", maxRetries: 0 });
const tool = {
  type: "function",
  function: { name: "record", description: "Record.", parameters: SCHEMA, parse: JSON.parse, function: record },
};
const runner = client.chat.completions.runTools({
  model: process.env.MODEL,
  stream: true,
  messages: [{ role: "user", content: QUESTION }],
  tools: [tool],
});
finish(await runner.finalContent());
