/** Admin endpoints for channels and their models. */
import { GatewayError, type ListedModel } from 'sluice';
import { channelStanding, thinksAtAll, type InternalTools } from 'sluice/internal';
import type { Channel, BreakerStatus } from './core-types.ts';
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

/** Returns the routes about channels, and the models that they serve. */
export function channelHandlers(
  tools: ChannelTools,
  switches: ChannelSwitches,
  audit: Audit,
): Handlers<
  'listChannels' | 'testChannel' | 'enableChannel' | 'disableChannel' | 'resetChannel' | 'listModels'
> {
  const { apiKeys, catalog, health, calls } = tools;
  const channels = new ChannelViews(tools);
  const switchChannel = async (request: Author & { readonly id: string }, on: boolean) => {
    const { id } = request;
    const found = channels.channelOf(id);
    const before = { enabled: catalog.isOn(id) };
    await switches.set(id, on);
    await audit.note(request, {
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
    async testChannel(request) {
      const { id, body } = request;
      const result = await testChannel(calls, channels.channelOf(id), body.model);
      const after = { model: result.model, ok: result.ok };
      await audit.note(request, { action: 'channel-test', target: id, after });
      return result;
    },
    enableChannel: (request) => switchChannel(request, true),
    disableChannel: (request) => switchChannel(request, false),
    async resetChannel(request) {
      const { id } = request;
      const found = channels.channelOf(id);
      const { best } = channelStanding(health.report(), found);
      health.reset(id);
      await audit.note(request, {
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
    // Only reads, because the database has what all processes have learned.
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
    // Both figures are from the usage log, because counts of one process would contradict the records of all processes.
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

/** Returns a model without its channels, which only actors for the whole gateway may see. */
function withoutChannels(model: ModelView): ModelView {
  return { ...model, channels: [] };
}

/** Models that are shown for one channel. */
const maxCoolingModels = 50;
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

/** Returns the breaker states of a channel, its keys and the models behind them. */
function healthOf(
  channel: Channel,
  report: readonly BreakerStatus[],
): Pick<ChannelView, 'standing' | 'keys' | 'spared'> {
  const own = report.filter((status) => status.channel === channel.id);
  return {
    standing: channelStanding(own, channel).best,
    keys: channel.keys.map(({ id }) => {
      const status = own.find(({ key, model }) => key === id && model === undefined);
      return { id, ...stateOf(status), failures: status?.failures ?? 0 };
    }),
    spared: own
      .flatMap((status) =>
        status.model === undefined ? [] : { key: status.key, model: status.model, ...stateOf(status) },
      )
      .slice(0, maxCoolingModels),
  };
}

function stateOf(
  status: BreakerStatus | undefined,
): Pick<ChannelView['keys'][number], 'standing' | 'until' | 'last'> {
  return { standing: status?.standing ?? 'up', until: status?.until, last: status?.last };
}
