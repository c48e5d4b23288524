// npm ai: streamText with steps, its own loop over tools. PROVIDER names the protocol's package.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { isStepCount, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { createOllama } from "ollama-ai-provider-v2";
import { QUESTION, SCHEMA, finish, record } from "./recording.mjs";

const base = process.env.BASE_URL;
const name = process.env.MODEL;
const apiKey = "any";
const models = {
  chat: () => createOpenAI({ baseURL: base + "/v1", apiKey }).chat(name),
  responses: () => createOpenAI({ baseURL: base + "/v1", apiKey }).responses(name),
  compatible: () => createOpenAICompatible({ name: "any", baseURL: base + "/v1", apiKey })(name),
  anthropic: () => createAnthropic({ baseURL: base + "/v1", apiKey })(name),
  google: () => createGoogleGenerativeAI({ baseURL: base + "/v1beta", apiKey })(name),
  ollama: () => createOllama({ baseURL: base + "/api" })(name),
};
const result = streamText({
  model: models[process.env.PROVIDER](),
  prompt: QUESTION,
  maxRetries: 0,
  tools: {
    record: tool({ description: "Record.", inputSchema: jsonSchema(SCHEMA), execute: async (input) => record(input) }),
  },
  stopWhen: (stepCountIs ?? isStepCount)(8),
  onError: ({ error }) => {
    console.error(error);
    process.exitCode = 1;
  },
});
finish(await result.text);
