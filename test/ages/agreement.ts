/** Compares what the sums of a filled database say with its records: a read that is fast and wrong is worth nothing. */
import type { AgedGateway } from './gateway.ts';
import type { Statements } from './statements.ts';

const hour = 3_600_000;
const day = 24 * hour;

/** Times that are compared, with where they begin and end before the newest record, in milliseconds. */
const times = [
  ['1 hour', hour, 0],
  ['24 hours', day, 0],
  ['7 days', 7 * day, 0],
  ['15 days', 15 * day, 0],
  ['15 days before those', 30 * day, 15 * day],
  ['30 days', 30 * day, 0],
] as const;
const ofAll = ['keyId', 'model', 'channel', 'status'];
const ofOwned = ['organisation', 'team', 'member'];

/** Returns sentences about sums that differ from the records, or from each other by owners. */
export async function disagreements(
  gateway: AgedGateway,
  statements: Statements,
  now: number,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [name, from, to] of times) {
    // Until the newest record, because calls are made beside the reads.
    const [since, until] = [now - from, now - to];
    const [row] = await statements.run(
      `SELECT COUNT(*) AS calls, COUNT(owners) AS owned FROM usage_records WHERE at >= ${since} AND at < ${until}`,
    );
    for (const by of [...ofAll, ...ofOwned])
      for (const limit of [200, 5_000]) {
        const wanted = Number(row?.[ofAll.includes(by) ? 'calls' : 'owned']);
        const calls = callsOf(
          await gateway.ask(`usage/sums?by=${by}&since=${since}&until=${until}&limit=${limit}`),
        );
        if (calls !== wanted)
          found.push(
            `${name} by ${by}, ${limit} listed: ${calls} calls in the sums, ${wanted} in the records`,
          );
      }
  }
  return found;
}

/** Returns the calls of all groups of an answer. */
function callsOf(answer: string): number {
  const { sums, rest } = JSON.parse(answer) as {
    readonly sums: readonly { readonly calls: number }[];
    readonly rest?: { readonly calls: number };
  };
  return sums.reduce((all, { calls }) => all + calls, rest?.calls ?? 0);
}
