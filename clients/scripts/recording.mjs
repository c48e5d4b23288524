// The tool that the drivers give their clients, and how a driver ends. Its proof is the one that plan.py expects.
import { createHash } from "node:crypto";
import { writeSync } from "node:fs";

export const QUESTION = "Record the texts with the tool, then say that all is recorded.";
export const SCHEMA = {
  type: "object",
  properties: {
    text: { type: "string" },
    tags: { type: "array", items: { type: "string" } },
    count: { type: "integer" },
  },
  required: ["text", "tags", "count"],
};

export function record({ text, tags, count }) {
  return "proof " + createHash("sha256").update([text, ...tags, String(count)].join("\n")).digest("hex");
}

// Print the model's last words for the runner to compare.
export function finish(text) {
  writeSync(1, text);
}
