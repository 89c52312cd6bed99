// Loaded by app.py into Node, where the CDK runs. Without marking of the heap in further threads an empty app takes 1 s of
// CPU less (docs/explanation/performance.md). Presumably it is the growing memory of the CDK's template validator,
// WebAssembly, that causes it.
require("node:v8").setFlagsFromString("--no-concurrent-marking");
