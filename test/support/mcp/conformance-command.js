// What the conformance suite starts as the client: `node conformance-command.js ADDRESS URL`. Has the test that listens at ADDRESS play the
// scenario, so that no process has to load the gateway for it alone.
const [address, url] = process.argv.slice(2);
const response = await fetch(address, {
  method: 'POST',
  body: JSON.stringify({
    url,
    name: process.env.MCP_CONFORMANCE_SCENARIO,
    context: JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}'),
  }),
});
console.error(await response.text());
process.exitCode = response.ok ? 0 : 1;
