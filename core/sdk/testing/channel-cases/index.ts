/** The promises of every channel as test cases, run against a provider on this machine. */
import { trials } from '../../../conformance/index.ts';
import { lackNames } from '../../../conformance/trial.ts';
import { refused } from './answers.ts';
import { featureCases, textCases } from './plain.ts';
import { caseMaker, trialCase } from './scene.ts';
import { streamCases } from './streams.ts';
import type { ChannelCase, ChannelUnderTest, Lack } from './tested.ts';
import { toolCases } from './tools.ts';

export type { ChannelCase, ChannelUnderTest, Lack } from './tested.ts';

/** A client's status for a provider's: the key that was refused is the operator's, and a model that is not there may be elsewhere. */
const usualErrors: Readonly<Record<number, number>> = {
  400: 400,
  401: 502,
  403: 502,
  404: 503,
  413: 413,
  422: 400,
  429: 429,
  500: 502,
  502: 502,
  503: 503,
};

/**
 * What every channel promises, tried over a provider on this machine: text, streams, tools, images, structured output, reasoning, usage,
 * limits, errors, clients who leave. Each case starts a gateway of its own. Throws for a name in `lacks` that does not exist.
 *
 * @example
 * import { test } from 'node:test';
 * for (const { name, run } of channelCases({ channel: ({ url, key }) => mine({ baseUrl: url, key, models: ['test-model'] }) }))
 *   test(name, run);
 */
export function channelCases(tested: ChannelUnderTest): readonly ChannelCase[] {
  const { lacks = [], errors = {} } = tested;
  checkNames(lacks);
  const one = caseMaker(tested);
  const has = (lack: Lack | undefined): boolean => lack === undefined || !lacks.includes(lack);
  return [
    ...textCases(one),
    ...(has('streams') ? streamCases(one) : []),
    ...(has('tools') ? toolCases(one, lacks) : []),
    ...featureCases(one).flatMap(([lack, own]) => (has(lack) ? [own] : [])),
    ...trials
      .filter(({ operation, lack }) => operation === 'chat' && has(lack))
      .map((trial) => trialCase(tested, trial)),
    ...Object.entries({ ...usualErrors, ...errors }).map(([status, expected]) =>
      one(
        `answers ${expected} when its provider answers ${status}`,
        { status: Number(status) },
        async ({ request }) => refused(await request({}), expected),
      ),
    ),
  ];
}

/** Throws for an unknown name: its cases would run, and a test in JavaScript has no compiler that says so. */
function checkNames(lacks: readonly string[]): void {
  const unknown = lacks.filter((name) => !lackNames.some((known) => known === name));
  if (unknown.length > 0)
    throw new Error(
      `Unknown name in "lacks": ${unknown.map((name) => `"${name}"`).join(', ')}. Known names: ${lackNames.join(', ')}.`,
    );
}
