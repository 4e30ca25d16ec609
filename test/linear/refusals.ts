import { rewriteMembers } from '../../core/json/edit-members.ts';
import { upstreamError } from '../../core/formats/_shared/upstream-error/index.ts';
import { namedMembers } from '../../plugins/learned-refusals/named-members.ts';
import type { Work } from './measure.ts';
import { members, times } from './requests.ts';

/** Bodies of clients from which members go that a provider refuses, and sentences in which a provider names them. */
export function refusalWork(): Work[] {
  const refused = ['seed', 'reasoning.summary', 'generationConfig.topK'].map((path) => ({ path }));
  const bodies: readonly { readonly name: string; make(size: number): string }[] = [
    {
      name: 'many members',
      make: (size) => JSON.stringify({ ...members(size), seed: 1 }),
    },
    {
      name: 'one member many times',
      make: (size) => `{${times(size, () => '"seed":1').join()}}`,
    },
    {
      name: 'one object many times',
      make: (size) => `{${times(size, (index) => `"reasoning":{"summary":1,"x${index}":2}`).join()}}`,
    },
    { name: 'a long text', make: (size) => JSON.stringify({ text: '\\"seed'.repeat(16 * size), seed: 1 }) },
    { name: 'deep lists', make: (size) => `{"a":${'['.repeat(size)}${']'.repeat(size)},"seed":1}` },
  ];
  const sentences = ['#/a', 'unknown name ', 'a.', 'unsupported parameter '];
  return [
    ...bodies.map(({ name, make }): Work => ({
      part: 'refused members: taken out of a body',
      shape: name,
      make(size) {
        const bytes = Buffer.from(make(size));
        return { bytes: bytes.length, run: () => rewriteMembers(bytes, {}, refused) };
      },
    })),
    ...sentences.map((words): Work => ({
      part: 'refused members: named by a provider',
      shape: words,
      make(size) {
        const body = JSON.stringify({ error: { message: words.repeat(size), param: 'x' } });
        return { bytes: body.length, run: () => namedMembers(upstreamError(400, body), 'messages') };
      },
    })),
  ];
}
