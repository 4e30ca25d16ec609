import { createLog } from '../log.ts';
import type { ChannelKind, ChannelOptions, ChannelTools } from '../sdk/define.ts';
import type { KindTraits } from './contradictions.ts';

/** Options by which kinds are set up to be asked for their traits alone: the first that a kind takes. */
const trials: readonly Readonly<Record<string, unknown>>[] = [{}, { region: 'us-east-1' }];

/** Sets channel kinds up without a config, and returns those that the catalogue knows models of. Throws where a setup fails. */
export function traitsOfKinds(kinds: readonly ChannelKind[]): readonly KindTraits[] {
  return kinds.flatMap(({ spec }) => {
    const { name: kind, catalogue = [] } = spec;
    if (catalogue.length === 0) return [];
    const { traits = () => ({}), thinking, speaks } = partsOf(spec);
    return [{ kind, catalogue, traits, thinking, formats: speaks.chat ?? [] }];
  });
}

function partsOf({ name, options, setup }: ChannelKind['spec']): ReturnType<ChannelKind['spec']['setup']> {
  const common: ChannelOptions = { key: 'unused', baseUrl: 'http://127.0.0.1:9/v1' };
  for (const trial of trials) {
    const own = options?.safeParse(trial);
    try {
      if (own?.success !== false) return setup({ ...common, ...own?.data }, idleTools);
    } catch {
      // The next ones may be what it needs.
    }
  }
  throw new Error(`The channel kind "${name}" cannot be set up without a config.`);
}

/** Tools of a channel that is asked for nothing. */
const unused = (): never => {
  throw new Error('This channel is set up for its traits alone.');
};
const idleTools = {
  log: createLog('silent'),
  keys: ['unused'],
  http: { send: unused, read: unused, close: () => Promise.resolve() },
  sockets: { connect: unused, close: () => Promise.resolve() },
  download: unused,
  format: () => undefined,
  onClose: () => {},
} as unknown as ChannelTools;
