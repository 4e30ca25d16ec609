import { createLog } from '../log.ts';
import type { ChannelKind, ChannelOptions, ChannelParts, ChannelTools } from '../sdk/define.ts';
import type { KindTraits } from './contradictions.ts';

/** Options to set up kinds only for their traits. The first one that a kind accepts is used. */
const trials: readonly Readonly<Record<string, unknown>>[] = [{}, { region: 'us-east-1' }];

/** Options by which kinds have another part of the catalogue. */
const variants: readonly Readonly<Record<string, unknown>>[] = [{ region: 'us-east-1', endpoint: 'mantle' }];

/** Sets channel kinds up without a config, and returns those that the catalogue knows models of. Throws where a setup fails. */
export function traitsOfKinds(kinds: readonly ChannelKind[]): readonly KindTraits[] {
  return kinds.flatMap(({ spec }) => {
    if ((spec.catalogue ?? []).length === 0) return [];
    const usual = partsOf(spec, trials);
    const first = kindTraits(spec, usual);
    if (usual.catalogue === undefined) return [first];
    // The first of its providers is what such a kind has for itself.
    return [first, ...variants.map((variant) => kindTraits(spec, partsOf(spec, [variant]), 1))];
  });
}

function kindTraits(spec: ChannelKind['spec'], parts: ChannelParts, providers = Infinity): KindTraits {
  const { traits = () => ({}), thinking, speaks, catalogue = spec.catalogue ?? [] } = parts;
  const known = catalogue.slice(0, providers);
  return { kind: spec.name, catalogue: known, traits, thinking, formats: speaks.chat ?? [] };
}

function partsOf(
  { name, options, setup }: ChannelKind['spec'],
  tried: readonly Readonly<Record<string, unknown>>[],
): ChannelParts {
  const common: ChannelOptions = { key: 'unused', baseUrl: 'http://127.0.0.1:9/v1' };
  for (const trial of tried) {
    const own = options?.safeParse(trial);
    try {
      if (own?.success !== false) return setup({ ...common, ...own?.data }, idleTools) as ChannelParts;
    } catch {
      // The next ones may be what it needs.
    }
  }
  throw new Error(`The channel kind "${name}" cannot be set up without a config.`);
}

/** Tools of a channel that sends no requests. */
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
