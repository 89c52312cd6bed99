// Loaded by app.py into Node, where the CDK runs. Its template validator is WebAssembly, whose memory grows in small steps;
// V8 takes each for a reason to mark the heap in further threads: 1.5 s of CPU that frees nothing
// (docs/explanation/performance.md).
require("node:v8").setFlagsFromString("--no-concurrent-marking");
