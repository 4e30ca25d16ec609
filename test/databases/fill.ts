/** Uses a gateway as clients and operators do, so that its database holds something of each kind. */
import { setTimeout as pause } from 'node:timers/promises';
import { sendRequest, operate, type Answer, type Json } from './client.ts';
import type { Written, WrittenAdministration, WrittenKey, WrittenSum } from './written.ts';

/** Keys to make: one for all that is kept, one whose budget is used up, one that is disabled. */
const keys = [
  {
    name: 'Zoë the first',
    note: 'of a database',
    budgets: [{ unit: 'micro-dollar', period: 'total', amount: 50_000_000 }],
  },
  { name: 'used up', budgets: [{ unit: 'token', period: 'total', amount: 1 }] },
  { name: 'disabled' },
  { name: 'without limits' },
] as const;

/** Uses the gateway. Resolves with what it tells of all that, once its records are written. */
export async function fill(url: string): Promise<Written> {
  const admin = await operate(url);
  const made: { readonly key: { readonly id: string }; readonly value: string }[] = [];
  for (const key of keys)
    made.push(
      (await admin('keys', key)) as { readonly key: { readonly id: string }; readonly value: string },
    );
  const [first, usedUp, disabled, free] = made.map(({ value }) => value) as [string, string, string, string];
  const post = async (key: string, path: string, body: object | FormData): Promise<Json> =>
    ok(await sendRequest(url, key, path, body));

  for (let call = 0; call < 3; call += 1) await post(first, '/v1/chat/completions', chat(`Call ${call}`));
  await sendRequest(url, usedUp, '/v1/chat/completions', {
    ...chat('More than the budget has'),
    max_tokens: 10,
  });
  await post(free, '/v1/chat/completions', chat('Hello'));
  const conversation = String((await post(first, '/v1/conversations', {}))['id']);
  const texts = ['The sky is blue.', 'So is the sea.'];
  for (const input of texts) await post(first, '/v1/responses', { model: 'demo', input, conversation });
  const response = String(
    (await post(first, '/v1/responses', { model: 'demo', input: 'Remember 42.', store: true }))['id'],
  );
  const video = String(
    (await post(free, '/v1/videos', { model: 'sora-2', prompt: 'A cat', seconds: '4' }))['id'],
  );
  const form = new FormData();
  form.set('purpose', 'user_data');
  form.set('file', new File(['Hello'], 'hello.txt'));
  const file = await sendRequest(url, free, '/v1/files', form);
  await admin(`keys/${made[2]?.key.id}/disable`, {});
  await sendRequest(url, disabled, '/v1/chat/completions', chat('Hello'));

  const administration = await administer(url, admin);
  const snapshot = await settled(admin);
  return {
    ...snapshot,
    keys: snapshot.keys.map((key) => ({
      ...key,
      secret: made.find(({ key: { id } }) => id === key.id)?.value ?? '',
    })),
    conversation: { id: conversation, texts },
    response,
    video,
    ...(file.status === 200 ? { file: String(file.body['id']) } : {}),
    ...(administration === undefined
      ? {}
      : { administration: { ...administration, spent: await spentBy(admin, administration.organisation) } }),
  };
}

/** Does what administrators do with people and run-time configuration. Undefined where the version has none of it. */
async function administer(
  url: string,
  admin: (path: string, body?: object) => Promise<Json>,
): Promise<Omit<WrittenAdministration, 'spent'> | undefined> {
  if (!(await hasPath(admin, 'users'))) return undefined;
  const budgets = [{ unit: 'micro-dollar', period: 'total', amount: 50_000_000 }];
  const organisation = String((await admin('owners', { kind: 'organisation', name: 'Acme', budgets }))['id']);
  const team = String((await admin('owners', { kind: 'team', name: 'research', organisation }))['id']);
  const made = await admin('keys', { name: 'of the team', team, budgets });
  const { id } = made['key'] as { readonly id: string };
  const secret = String((await admin(`keys/${id}/rotate`, { graceSeconds: 30 * 86_400 }))['value']);
  const { user } = (await admin('users', { email: 'ada@example.com', name: 'Ada', organisation })) as {
    readonly user?: WrittenAdministration['user'];
  };
  if (user === undefined) throw new Error('The user is not told.');
  const alias = 'fast';
  await admin('config', { kind: 'alias', name: alias, value: 'demo' });
  // On a busy machine a change is answered before it is applied.
  while (!(await isApplied(admin))) await pause(500);
  const call = await sendRequest(url, secret, '/v1/chat/completions', { ...chat('Hello'), model: alias });
  if (call.status !== 200) throw new Error(`${call.status} ${JSON.stringify(call.body)}`);
  return {
    organisation,
    team,
    secret,
    user: { id: user.id, email: user.email, member: user.member },
    alias,
  };
}

async function isApplied(admin: (path: string) => Promise<Json>): Promise<boolean> {
  const { revision, running } = await admin('config');
  return Number(running) >= Number(revision);
}

async function hasPath(admin: (path: string) => Promise<Json>, path: string): Promise<boolean> {
  return admin(path).then(
    () => true,
    () => false,
  );
}

/** Micro-dollars that an owner has spent of its first budget. */
export async function spentBy(admin: (path: string) => Promise<Json>, owner: string): Promise<number> {
  const { budgets } = (await admin(`owners/${owner}`)) as {
    readonly budgets?: readonly { readonly spent: number }[];
  };
  return budgets?.[0]?.spent ?? 0;
}

/** A chat that the demo model answers. */
export function chat(content: string): object {
  return { model: 'demo', messages: [{ role: 'user', content }] };
}

/** Resolves with the view of the admin API once two looks at it are equal: records are written a moment after their calls. */
async function settled(
  admin: (path: string) => Promise<Json>,
): Promise<Pick<Written, 'records' | 'sums'> & { readonly keys: readonly Omit<WrittenKey, 'secret'>[] }> {
  let before = '';
  for (;;) {
    const view = await viewOf(admin);
    if (before === JSON.stringify(view)) return view;
    before = JSON.stringify(view);
    await pause(2_000);
  }
}

/** Returns what the admin API tells of keys, records and sums, without what changes by itself. */
export async function viewOf(admin: (path: string) => Promise<Json>) {
  const keyViews = (await admin('keys'))['keys'] as readonly WrittenKey[];
  const { records } = (await admin('usage?limit=500')) as unknown as {
    readonly records: readonly { readonly id: string }[];
  };
  const { sums } = (await admin('usage/sums?by=keyId')) as unknown as {
    readonly sums: readonly WrittenSum[];
  };
  return {
    keys: keyViews
      .filter(({ name }) => keys.some((key) => key.name === name))
      .map(({ id, name, note, enabled, budgets }) => ({
        id,
        name,
        ...(note === undefined ? {} : { note }),
        enabled,
        budgets: budgets.map(({ unit, period, amount, spent }) => ({ unit, period, amount, spent })),
      }))
      .toSorted(({ id: one }, { id: other }) => (one < other ? -1 : 1)),
    records: records.map(({ id }) => id),
    sums: sums
      .map(({ group, calls, failed, refused = 0, input, output, microDollars }) => ({
        group,
        calls,
        // Older versions counted refusals as failures.
        failed: failed + refused,
        input,
        output,
        microDollars,
      }))
      .toSorted(({ group: one }, { group: other }) => (one < other ? -1 : 1)),
  };
}

function ok({ status, body }: Answer): Json {
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body;
}
