// npm @google/genai: its stream, parts sent back as they came.
import { GoogleGenAI } from "@google/genai";
import { QUESTION, SCHEMA, finish, record } from "./recording.mjs";

const client = new GoogleGenAI({ apiKey: "any", httpOptions: { baseUrl: process.env.BASE_URL } });
const tool = { name: "record", description: "Record.", parametersJsonSchema: SCHEMA };
const config = { tools: [{ functionDeclarations: [tool] }], systemInstruction: "Be exact." };
const contents = [{ role: "user", parts: [{ text: QUESTION }] }];
for (;;) {
  const parts = [];
  for await (const chunk of await client.models.generateContentStream({ model: process.env.MODEL, contents, config })) {
    parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
  }
  contents.push({ role: "model", parts });
  const calls = parts.filter((part) => part.functionCall).map((part) => part.functionCall);
  if (calls.length === 0) {
    finish(parts.map((part) => part.text ?? "").join(""));
    break;
  }
  contents.push({
    role: "user",
    parts: calls.map((call) => ({
      functionResponse: { id: call.id, name: call.name, response: { output: record(call.args) } },
    })),
  });
}
