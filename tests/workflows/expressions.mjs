// Evaluate GitHub's expressions with GitHub's own parser: a line of JSON in, with the expression and its contexts, a
// line of JSON out. What is no context is a status function, such as `failure`, with what it returns.
// https://docs.github.com/en/actions/reference/workflows-and-actions/expressions
import { createInterface } from "node:readline";
import { data, Evaluator, Lexer, Parser } from "@actions/expressions";

for await (const line of createInterface({ input: process.stdin })) {
  const { expression, contexts, functions } = JSON.parse(line);
  const known = Object.entries(functions).map(([name, value]) => ({
    name, minArgs: 0, maxArgs: 0, call: () => new data.BooleanData(value),
  }));
  const parsed = new Parser(new Lexer(expression).lex().tokens, Object.keys(contexts), known).parse();
  const given = JSON.parse(JSON.stringify(contexts), data.reviver);
  const value = new Evaluator(parsed, given, new Map(known.map((each) => [each.name, each]))).evaluate();
  console.log(JSON.stringify({ text: value.coerceString(), value }, data.replacer));
}
