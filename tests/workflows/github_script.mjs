// Run a script as actions/github-script does, with a GitHub that answers as it is told: JSON in, with the script, its
// context and the answers by method, each with data or with the status of a refusal; JSON out, with what it called.
// https://github.com/actions/github-script
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { script, context, answers } = JSON.parse(readFileSync(0, "utf8"));
const calls = [];
const call = (name) => async (given) => {
  calls.push({ name, ...given });
  const { status, data } = answers[name] ?? {};
  if (status) throw Object.assign(new Error("refused"), { status });
  return { data };
};
const methods = new Proxy({}, { get: (_, name) => call(name) });
const github = {
  rest: new Proxy({}, { get: () => methods }),
  paginate: async (method, given) => (await method(given)).data,
};
const core = {
  notice: (text) => calls.push({ name: "notice", text }),
  setOutput: (key, value) => calls.push({ name: "setOutput", key, value }),
  summary: { addRaw: (text) => ({ write: async () => calls.push({ name: "summary", text }) }) },
};
const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
const body = new AsyncFunction("github", "context", "core", "require", script);
const error = await body(github, context, core, createRequire(import.meta.url)).then(() => "", String);
console.log(JSON.stringify({ calls, error }));
