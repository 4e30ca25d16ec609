/** Admin endpoints for channels and their models. */
import { GatewayError, type ListedModel } from 'sluice';
import { channelStanding, thinksAtAll, type InternalTools } from 'sluice/internal';
import type { Channel, PlaceHealth } from './core-types.ts';
import { Memory, type Learned } from '../learned-refusals/memory.ts';
import { traitOf } from '../learned-refusals/trait.ts';
import { ownModels } from './access/own-models.ts';
import type { Audit, Author } from './audit.ts';
import { testChannel } from './channel-test.ts';
import { namesOf } from './names.ts';
import type { ChannelView, ModelView } from './schemas/index.ts';
import type { Handlers } from './serve.ts';
import type { ChannelSwitches } from './switches.ts';

const unmeasured = [0, 0, 0] as const;

type ChannelTools = Pick<
  InternalTools,
  'apiKeys' | 'catalog' | 'health' | 'usageLog' | 'calls' | 'prices' | 'stores' | 'log'
>;

/** The routes about channels, and the models that they serve. */
export function channelHandlers(
  tools: ChannelTools,
  switches: ChannelSwitches,
  audit: Audit,
): Handlers<
  'listChannels' | 'testChannel' | 'enableChannel' | 'disableChannel' | 'resetChannel' | 'listModels'
> {
  const { apiKeys, catalog, health, calls } = tools;
  const channels = new ChannelViews(tools);
  const turn = async (asked: Author & { readonly id: string }, on: boolean) => {
    const { id } = asked;
    const found = channels.channelOf(id);
    const before = { enabled: catalog.isOn(id) };
    await switches.turn(id, on);
    await audit.note(asked, {
      action: on ? 'channel-enable' : 'channel-disable',
      target: id,
      before,
      after: { enabled: on },
    });
    return channels.viewOf(found);
  };

  return {
    async listChannels() {
      return { channels: await channels.views(catalog.channels) };
    },
    async testChannel(asked) {
      const { id, body } = asked;
      const result = await testChannel(calls, channels.channelOf(id), body.model);
      const after = { model: result.model, ok: result.ok };
      await audit.note(asked, { action: 'channel-test', target: id, after });
      return result;
    },
    enableChannel: (asked) => turn(asked, true),
    disableChannel: (asked) => turn(asked, false),
    async resetChannel(asked) {
      const { id } = asked;
      const found = channels.channelOf(id);
      const { best } = channelStanding(health.report(), found);
      health.reset(id);
      await audit.note(asked, {
        action: 'channel-reset',
        target: id,
        before: { standing: best },
      });
      return channels.viewOf(found);
    },
    async listModels({ actor, scope }) {
      const isOwn = await ownModels(actor, scope, apiKeys);
      const names = new Set(
        catalog.channels.flatMap(({ models, listed }) => [...models, ...(listed?.() ?? [])]),
      );
      const limits = new Map(catalog.list().map((model) => [model.id, model]));
      const models = [...names]
        .filter(isOwn)
        .toSorted()
        .map((name) => modelOf(name, limits.get(name), tools));
      return { models: scope.keys === undefined ? models : models.map(withoutChannels) };
    },
  };
}

/** Finds channels, and shows how they stand. */
class ChannelViews {
  readonly #catalog: ChannelTools['catalog'];
  readonly #health: ChannelTools['health'];
  readonly #usageLog: ChannelTools['usageLog'];
  readonly #learned: Memory;

  constructor({ catalog, health, usageLog, stores, log }: ChannelTools) {
    this.#catalog = catalog;
    this.#health = health;
    this.#usageLog = usageLog;
    // Nothing is learned here: it holds what all processes have learned.
    this.#learned = new Memory({ stores, log }, { ttl: 0, perHour: 0, follow: 0 });
  }

  channelOf(id: string): Channel {
    const found = this.#catalog.channels.find((channel) => channel.id === id);
    if (found === undefined) throw new GatewayError('not_found', `There is no channel ${id.slice(0, 100)}.`);
    return found;
  }

  async views(channels: readonly Channel[]): Promise<ChannelView[]> {
    // Whole minutes, of which there are sums.
    const since = Math.ceil((Date.now() - 3_600_000) / 60_000) * 60_000;
    // Both from the usage log: what one process has counted by itself would contradict what all of them have recorded.
    const [{ sums }, failures] = await Promise.all([
      this.#usageLog.sums({ since }, 'channel', { percentiles: true }),
      this.#usageLog.failedAttempts(since),
      this.#learned.refresh(),
    ]);
    const bySums = new Map(sums.map((one) => [one.group, one]));
    const report = this.#health.report();
    return channels.map((channel) => {
      const { id, kind, priority, weight, speaks } = channel;
      const hour = bySums.get(id);
      const failed = failures.get(id);
      return {
        id,
        kind,
        enabled: this.#catalog.isOn(id),
        priority,
        weight,
        models: [...namesOf(channel)],
        speaks: Object.fromEntries(
          Object.entries(speaks).map(([operation, formats]) => [operation, [...formats]]),
        ),
        failures: failed?.count ?? 0,
        lastFailure: failed?.last,
        lastHour:
          hour === undefined
            ? undefined
            : {
                calls: hour.calls,
                failed: hour.failed,
                ms: [...(hour.ms ?? unmeasured)],
                firstMs: [...(hour.firstMs ?? unmeasured)],
              },
        ...healthOf(channel, report),
        learned: learnedOf(id, this.#learned.all()),
      };
    });
  }

  async viewOf(channel: Channel): Promise<{ readonly channel: ChannelView }> {
    const [view] = await this.views([channel]);
    if (view === undefined) throw new Error('A channel has no view.');
    return { channel: view };
  }
}

function modelOf(
  id: string,
  shown: ListedModel | undefined,
  { catalog, prices }: Pick<ChannelTools, 'catalog' | 'prices'>,
): ModelView {
  const serving = catalog.channels.flatMap((channel) => {
    const upstreamModel = channel.upstreamModel(id);
    return upstreamModel === undefined ? [] : [{ channel, upstreamModel }];
  });
  const [first] = serving;
  const traits = first?.channel.traits(first.upstreamModel) ?? {};
  const { inputLimit, outputLimit, reasoning } = traits;
  const served = serving.map(({ channel, upstreamModel }) => ({
    id: channel.id,
    upstreamModel,
    enabled: catalog.isOn(channel.id),
    price: prices.row(id, { channel: channel.id, model: upstreamModel }),
  }));
  return {
    id,
    channels: served,
    price: served.find(({ price }) => price !== undefined)?.price,
    inputLimit: shown === undefined ? inputLimit : shown.inputLimit,
    outputLimit: shown === undefined ? outputLimit : shown.outputLimit,
    reasoning: shown === undefined ? reasoning && thinksAtAll(traits) : shown.thinking,
    operation: shown?.operation,
    takes: shown?.takes?.slice(),
    can: shown?.can?.slice(),
    cannot: shown?.cannot?.slice(),
  };
}

/** Who serves a model is for those alone who see the whole gateway. */
function withoutChannels(model: ModelView): ModelView {
  return { ...model, channels: [] };
}

/** Models that are shown for one channel. */
const mostSpared = 50;
/** Learned refusals that are shown for one channel. */
const mostLearned = 50;

/** Returns what the models of a channel were found to refuse, the latest first. */
function learnedOf(id: string, all: readonly Learned[]): ChannelView['learned'] {
  return all
    .filter(({ channel }) => channel === id)
    .toSorted((one, other) => other.since - one.since)
    .slice(0, mostLearned)
    .map(({ model, member, since, until }) => ({
      model,
      member: member.path,
      since,
      until,
      option: traitOf(model, member),
    }));
}

/** How a channel, each of its keys and the models behind them stand. */
function healthOf(
  channel: Channel,
  report: readonly PlaceHealth[],
): Pick<ChannelView, 'standing' | 'keys' | 'spared'> {
  const own = report.filter((place) => place.channel === channel.id);
  return {
    standing: channelStanding(own, channel).best,
    keys: channel.keys.map(({ id }) => {
      const place = own.find(({ key, model }) => key === id && model === undefined);
      return { id, ...stateOf(place), failures: place?.failures ?? 0 };
    }),
    spared: own
      .flatMap((place) =>
        place.model === undefined ? [] : { key: place.key, model: place.model, ...stateOf(place) },
      )
      .slice(0, mostSpared),
  };
}

function stateOf(
  place: PlaceHealth | undefined,
): Pick<ChannelView['keys'][number], 'standing' | 'until' | 'last'> {
  return { standing: place?.standing ?? 'up', until: place?.until, last: place?.last };
}
