import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { blockOf, commentAbove } from './_comments.ts';
import { generatedBy, pageOf, sentence } from './_page.ts';

const source = readFileSync(join(import.meta.dirname, '../../core/model/event.ts'), 'utf8');
const union = source.slice(source.indexOf('export type GatewayEvent ='));
const members = union
  .slice(0, union.search(/;\n\n/))
  .split(/\n  \| /)
  .slice(1);

test('the reference has every event of a call', async () => {
  const lines: string[] = [];
  let above: string | undefined;
  for (const member of members) {
    const own = above;
    const [text = '', comment] = member.split(/\n  (?=\/\*\*)/);
    above = comment?.replace(/^\/\*\*\s*/, '').replace(/\s*\*\/$/, '');
    const isNamed = /^\w+$/.test(text.trim());
    const block = isNamed ? blockOf(source, `export interface ${text.trim()}`) : text;
    const type = /type: '([\w-]+)'/.exec(block)?.[1];
    const fields = [...block.matchAll(/readonly (\w+\??):/g)]
      .map(([, name = '']) => name)
      .filter((name) => name !== 'type');
    const inBlock = text.includes('InBlock') ? ['block', 'choice', 'extra?'] : [];
    const meaning = isNamed ? commentAbove(source, `export interface ${text.trim()}`) : own;
    const all = [...inBlock, ...(text.includes('SocketMessage') ? ['the message'] : []), ...fields];
    if (type === undefined) throw new Error(`no type in ${text}`);
    lines.push(
      `- \`${type}\`${all.length === 0 ? '' : ` (${all.map(shownField).join(', ')})`}${meaning === undefined ? '' : `: ${sentence(meaning)}`}`,
    );
  }
  const page = pageOf(
    '# Events of a call',
    generatedBy('test/reference/events.test.ts', '[core/model/event.ts](../../core/model/event.ts)'),
    "A response reaches plugins as an observable of these events, whatever the format and the provider. `content` of a response is seen by plugins that ask for it (`reads: 'content'`); otherwise bytes may pass through as `frames` or `bytes`. A type named here is `GatewayEvent` of the package `sluice`.",
    sentence(commentAbove(source, 'export type GatewayEvent') ?? ''),
    'Members that end in `?` may be absent. `block` names a block through its life, and `choice` is the number of the response, from 0, where a request asks for several.',
    lines.join('\n'),
  );
  await expect(page).toMatchFileSnapshot('../../docs/reference/events.md');
});

function shownField(name: string): string {
  return name.includes(' ') ? name : `\`${name}\``;
}
