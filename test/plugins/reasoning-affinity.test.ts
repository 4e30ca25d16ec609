import { afterEach, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import affinity from '../../plugins/reasoning-affinity.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway | undefined;

afterEach(async () => {
  await gateway?.close();
  gateway = undefined;
});

/** Two accounts of one provider that serve the same model: each refuses what the other has encrypted. */
const accounts = ['one', 'two'].map((account) =>
  demo({ id: account, account, speaks: ['messages'], models: { thinker: 'demo-thinking' } }),
);

type Block = Readonly<Record<string, unknown>> & { readonly type: string };
interface Answer {
  readonly status: number;
  readonly losses: string | null;
  readonly content: readonly Block[];
}

const tools = [
  { name: 'find', input_schema: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] } },
];

async function sendMessages(at: TestGateway, messages: readonly unknown[]): Promise<Answer> {
  const response = await fetch(`${at.url}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': at.key, 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({
      model: 'thinker',
      max_tokens: 4000,
      thinking: { type: 'enabled', budget_tokens: 1024 },
      tools,
      messages,
    }),
  });
  const { content = [] } = (await response.json()) as { content?: readonly Block[] };
  return { status: response.status, losses: response.headers.get('x-sluice-loss'), content };
}

/** A question, the call that answers it, and the result: what the second request brings. */
async function openLoop(at: TestGateway, question: string): Promise<readonly unknown[]> {
  const userMessage = { role: 'user', content: question };
  const { content } = await sendMessages(at, [userMessage]);
  const results = content
    .filter(({ type }) => type === 'tool_use')
    .map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'found' }));
  return [userMessage, { role: 'assistant', content }, { role: 'user', content: results }];
}

describe('encrypted reasoning', () => {
  test('goes back to the account that can read it, every time', async () => {
    gateway = await startGateway({ channels: accounts });
    for (let round = 0; round < 12; round += 1) {
      const history = await openLoop(gateway, `!redacted Please call find, ${round}`);
      const { status, losses, content } = await sendMessages(gateway, history);
      expect({ status, losses }).toEqual({ status: 200, losses: null });
      expect(content.at(-1)).toMatchObject({ text: 'find returned: found' });
    }
  });

  test('goes back there too when the client has forgotten it', async () => {
    gateway = await startGateway({ channels: accounts });
    for (let round = 0; round < 8; round += 1) {
      const messages: unknown[] = [{ role: 'user', content: `!redacted Please call find, ${round}` }];
      const chat = async (): Promise<{ losses: string | null; message: Record<string, unknown> }> => {
        const response = await fetch(`${gateway?.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway?.key}` },
          body: JSON.stringify({
            model: 'thinker',
            messages,
            tools: tools.map(({ name, input_schema }) => ({
              type: 'function',
              function: { name, parameters: input_schema },
            })),
          }),
        });
        expect(response.status).toBe(200);
        const { choices } = (await response.json()) as { choices: { message: Record<string, unknown> }[] };
        return { losses: response.headers.get('x-sluice-loss'), message: choices[0]?.message ?? {} };
      };
      const { role, content, tool_calls } = (await chat()).message;
      const [made] = tool_calls as { id: string }[];
      messages.push(
        { role, content, tool_calls },
        { role: 'tool', tool_call_id: made?.id, content: 'found' },
      );
      const { losses, message } = await chat();
      expect(losses).toBeNull();
      expect(message.content).toBe('find returned: found');
    }
  });

  test('of items goes back there too, whether the answers pass through or are read', async () => {
    gateway = await startGateway({
      channels: ['one', 'two'].map((account) =>
        demo({ id: account, account, speaks: ['responses'], models: { thinker: 'demo-thinking' } }),
      ),
    });
    const send = async (stream: boolean, input: readonly unknown[]): Promise<readonly Block[]> => {
      const response = await fetch(`${gateway?.url}/v1/responses`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway?.key}` },
        body: JSON.stringify({
          model: 'thinker',
          input,
          stream,
          store: false,
          include: ['reasoning.encrypted_content'],
          reasoning: { effort: 'high' },
          tools: tools.map(({ name, input_schema }) => ({
            type: 'function',
            name,
            parameters: input_schema,
          })),
        }),
      });
      const text = await response.text();
      expect([response.status, response.headers.get('x-sluice-loss'), text]).toEqual([200, null, text]);
      const last = stream ? text.slice(text.lastIndexOf('data: {') + 6, text.lastIndexOf('}') + 1) : text;
      const body = JSON.parse(last) as { output?: Block[]; response?: { output: Block[] } };
      return body.response?.output ?? body.output ?? [];
    };
    for (let round = 0; round < 12; round += 1) {
      const question = { role: 'user', content: `Please call find, ${round}` };
      const output = await send(round % 2 === 0, [question]);
      expect(output[0]?.type).toBe('reasoning');
      expect(output[0]?.encrypted_content).toEqual(expect.any(String));
      const results = output
        .filter(({ type }) => type === 'function_call')
        .map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'found' }));
      const final = await send(round % 3 === 0, [question, ...output, ...results]);
      expect(JSON.stringify(final.at(-1))).toContain('find returned: found');
    }
  });

  test('stays behind, and its loss is named, where another account has to answer', async () => {
    gateway = await startGateway({ channels: accounts, plugins: [affinity.off()] });
    const seen = new Set<string>();
    for (let round = 0; round < 12; round += 1) {
      const history = await openLoop(gateway, `!redacted Please call find, ${round}`);
      const { status, losses, content } = await sendMessages(gateway, history);
      expect(status).toBe(200);
      expect(content.at(-1)).toMatchObject({ text: 'find returned: found' });
      seen.add(losses ?? 'none');
    }
    expect([...seen].some((losses) => losses.includes('messages[1].content[0]'))).toBe(true);
    expect(seen).toContain('none');
  });
});
