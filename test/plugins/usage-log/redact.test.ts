import { describe, expect, test } from 'vitest';
import { isRule, redactor } from '../../../plugins/usage-log/redact.ts';

const body = {
  model: 'm',
  messages: [
    { role: 'system', content: 'be brief' },
    { role: 'user', content: [{ type: 'text', text: 'my number is 4111 1111 1111 1111' }] },
  ],
  metadata: { user: 'ann', deep: { user: 'bob' } },
};

describe('what is kept of a body', () => {
  test('has none of the credentials that a client sends for MCP servers', () => {
    const secret = 'plain-words';
    const kept = redactor([]).request({
      model: 'm',
      tools: [
        { type: 'mcp', server_label: 'a', authorization: secret, headers: { 'x-own': secret } },
        { mcpServers: [{ name: 'b', streamableHttpTransport: { url: 'u', headers: { 'x-own': secret } } }] },
        { mcp_servers: [{ name: 'c', streamable_http_transport: { headers: { 'x-own': secret } } }] },
      ],
      mcp_servers: [{ type: 'url', name: 'd', authorization_token: secret }],
    });
    expect(kept).not.toContain(secret);
    expect(kept).toContain('"server_label":"a"');
  });

  test.each([
    [
      'messages.*.content',
      { ...body, messages: body.messages.map((message) => ({ ...message, content: '…' })) },
    ],
    ['messages.0', { ...body, messages: ['…', body.messages[1]] }],
    ['metadata', { ...body, metadata: '…' }],
    ['**.user', { ...body, metadata: { user: '…', deep: { user: '…' } } }],
    ['metadata.*.user', { ...body, metadata: { user: 'ann', deep: { user: '…' } } }],
    ['nothing.here', body],
    ['model.too.deep', body],
  ])('has no %s in it', (rule, expected) => {
    const { json, text } = redactor([rule]);
    expect(JSON.parse(json(body))).toEqual(expected);
    expect(JSON.parse(text(JSON.stringify(body)))).toEqual(expected);
  });

  test('has nothing in it that a pattern finds', () => {
    expect(redactor([String.raw`/(\d{4} ?){4}/`]).json(body)).toContain('my number is …"');
    expect(redactor(['/ANN/i']).json(body)).toContain('"user":"…"');
  });

  test('has no credential in it, whatever the rules', () => {
    const secret = `sk-${'a1B2'.repeat(12)}`;
    expect(redactor([]).json({ text: `use ${secret} please` })).toBe('{"text":"use sk-… please"}');
    expect(redactor(['model']).text(`data: {"text":"${secret}"}`)).toBe('data: {"text":"sk-…"}');
  });

  test('is redacted in every event of a stream, and what was cut off goes', () => {
    const stream = 'event: x\ndata: {"user":"ann","n":1}\n\n: comment\ndata: [DONE]\n\ndata: {"user":"a';
    expect(redactor(['user']).text(stream)).toBe(
      'event: x\ndata: {"user":"…","n":1}\n\n: comment\ndata: …\n\ndata: …',
    );
    expect(redactor([]).text(stream)).toBe(stream);
    expect(redactor(['user']).text('{"user":"a')).toBe('…');
    expect(redactor(['user']).text('plain words')).toBe('…');
  });
});

test.each([
  ['a', true],
  ['a.*.b', true],
  ['/x+/i', true],
  ['', false],
  ['a..b', false],
  ['/(/', false],
  ['/x', false],
  ['//', false],
])('%j is a rule: %s', (rule, expected) => {
  expect(isRule(rule)).toBe(expected);
});
