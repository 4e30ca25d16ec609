import { ConfigError } from '../config/config.ts';
import type { ChannelKind, ChannelOptions, ChannelParts, ChannelTools } from '../sdk/define.ts';
import { findChannelKinds } from '../config/definitions.ts';
import type { Operation } from '../sdk/format.ts';
import { home } from '../config/installation/home.ts';
import { createLog, type Log } from '../log.ts';

/** Columns of the table. A column groups endpoints that a provider usually has together. */
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

/** Names of operations in a cell, for channels that have only some operations of a column. */
const words: { readonly [O in Operation]?: string } = {
  'generate-image': 'generate',
  'edit-image': 'edit',
  'vary-image': 'vary',
  transcribe: 'transcribe',
  'translate-audio': 'translate',
};

/**
 * Returns a Markdown table of all channel kinds with the formats of each endpoint. Sets up each kind with a placeholder key; no requests
 * are sent. Throws ConfigError when a kind does not load.
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

/** Returns the formats of a column. A format that only some operations of the column have is followed by their names. */
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
  const nothing = (): Promise<never> => Promise.reject(new Error('The matrix sends no requests.'));
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
    // Without `baseUrl`, because some kinds have further endpoints only at the provider's own address.
    return kind.spec.setup({ ...own, ...options }, tools);
  } catch {
    return kind.spec.setup({ ...own, ...options, baseUrl: 'http://127.0.0.1' }, tools);
  }
}
