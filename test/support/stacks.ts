// Errors hold as much of the stack as where a gateway runs. The test runner asks for ten times that, which costs what throws thousands of
// them on purpose, as the tests of damaged requests and replies, a fourteenth of their time.
Error.stackTraceLimit = 10;

// Node runs the sources, whose positions need no source map. With source maps, each stack that is read would be searched for in all of them.
process.setSourceMapsEnabled(false);
