import { ConfigError } from '../config/config.ts';
import type { ChannelKind, ChannelOptions, ChannelParts, ChannelTools } from '../sdk/define.ts';
import { findChannelKinds } from '../config/definitions.ts';
import type { Operation } from '../sdk/format.ts';
import { home } from '../config/installation/home.ts';
import { createLog, type Log } from '../log.ts';

/** Endpoints that providers have together or not at all, as the columns of the table. */
const columns: readonly (readonly [title: string, operations: readonly Operation[]])[] = [
  ['chat', ['chat']],
  ['token counts', ['count-tokens']],
  ['compaction', ['compact']],
  ['embeddings', ['embed']],
  ['rerank', ['rerank']],
  ['moderations', ['moderate']],
  ['OCR', ['ocr']],
  ['images', ['generate-image', 'edit-image', 'vary-image']],
  ['audio to text', ['transcribe', 'translate-audio']],
  ['speech', ['speak']],
  ['realtime', ['realtime']],
  ['video', ['create-video']],
];

/** Operations by the words that stand in a cell when a channel has only some of a column. */
const words: { readonly [O in Operation]?: string } = {
  'generate-image': 'generate',
  'edit-image': 'edit',
  'vary-image': 'vary',
  transcribe: 'transcribe',
  'translate-audio': 'translate',
};

/**
 * Which kind of channel speaks which endpoint in which form, as a table in Markdown. It is asked of the kinds themselves: each is set up
 * with a key that is none, and sends nothing. Throws ConfigError when a kind does not load.
 */
export async function channelMatrix(root = home): Promise<string> {
  const problems: string[] = [];
  const kinds = await findChannelKinds(root, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  const log = createLog('silent');
  const rows = kinds
    .toSorted((one, other) => (one.spec.name < other.spec.name ? -1 : 1))
    .map((kind) => {
      const { speaks } = partsOf(kind, log);
      return [`\`${kind.spec.name}\``, ...columns.map(([, operations]) => cell(speaks, operations))];
    });
  const titles = ['channel', ...columns.map(([title]) => title)];
  return [titles, titles.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

/** The forms of a column; where its operations differ each form names those that it is for. */
function cell(speaks: ChannelParts['speaks'], operations: readonly Operation[]): string {
  const byForm = new Map<string, Operation[]>();
  for (const operation of operations)
    for (const form of speaks[operation] ?? []) byForm.set(form, [...(byForm.get(form) ?? []), operation]);
  return [...byForm]
    .map(([form, some]) =>
      some.length === operations.length
        ? form
        : `${form} (${some.map((operation) => words[operation] ?? operation).join(', ')})`,
    )
    .join(', ');
}

function partsOf(kind: ChannelKind, log: Log): ChannelParts {
  const options: ChannelOptions = { key: 'none|none' };
  const nothing = (): Promise<never> => Promise.reject(new Error('Nothing is sent for a table.'));
  const tools = {
    log,
    keys: ['none|none'],
    http: { send: nothing, close: () => Promise.resolve() },
    sockets: { connect: nothing },
    format: () => undefined,
    onClose: () => {},
  } as unknown as ChannelTools;
  const own = kind.spec.options?.parse({});
  try {
    // At the provider's own address some kinds have endpoints that stand beside it.
    return kind.spec.setup({ ...own, ...options }, tools);
  } catch {
    return kind.spec.setup({ ...own, ...options, baseUrl: 'http://127.0.0.1' }, tools);
  }
}
