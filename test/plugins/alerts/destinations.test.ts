import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SMTPServer } from 'smtp-server';
import { testPlugins } from 'sluice/testing';
import alerts from '../../../plugins/alerts/index.ts';
import { Deliveries } from '../../../plugins/alerts/deliveries.ts';
import type { Item, Message } from '../../../plugins/alerts/alert.ts';
import { options } from '../../../plugins/alerts/options.ts';
import { makeAuthority, withoutOpenssl } from '../../support/certificates.ts';

const item = (more: Partial<Item> = {}): Item => ({
  id: 'channel-down main',
  kind: 'channel-down',
  subject: 'main',
  severity: 'critical',
  text: 'The channel "<!channel> *main* @everyone" is down & out.',
  view: 'channels',
  state: 'firing',
  at: Date.UTC(2026, 10, 26),
  ...more,
});

const message = (items: readonly Item[], more = 0): Message => ({
  id: 'msg_1',
  destination: 'one',
  items: [...items],
  more,
  tries: 1,
  nextAt: 0,
  createdAt: 0,
});

interface Post {
  readonly url: string;
  readonly body: Record<string, unknown>;
}

async function startHttp(): Promise<{ readonly url: string; readonly posts: Post[] }> {
  const posts: Post[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (piece: Buffer) => (text += piece.toString()));
    request.on('end', () => {
      posts.push({ url: request.url ?? '', body: JSON.parse(text) as Post['body'] });
      response.writeHead(202).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, posts };
}

type Given = NonNullable<NonNullable<Parameters<typeof alerts>[0]>['destinations']>[string];

async function open(destination: Given, more: object = {}): Promise<Deliveries> {
  const tested = await testPlugins([]);
  const opened = await Deliveries.open(
    options.parse({
      destinations: { one: destination },
      url: 'https://gw.example.com',
      timeout: 5_000,
      ...more,
    }),
    tested.tools as never,
  );
  onTestFinished(async () => {
    opened.close();
    await tested.close();
  });
  return opened;
}

describe('a destination', () => {
  test('of Slack gets blocks that mention nobody', async () => {
    const { url, posts } = await startHttp();
    const deliveries = await open({ type: 'slack', url: `${url}/services/T/B/x` });
    expect(await deliveries.send(message([item(), item({ state: 'resolved' })], 3))).toBeUndefined();
    expect(posts).toEqual([
      {
        url: '/services/T/B/x',
        body: {
          text: 'Sluice: 1 open, 1 resolved, 3 further',
          blocks: [
            {
              type: 'section',
              text: {
                type: 'mrkdwn',
                text: [
                  '*Critical* The channel "&lt;!channel&gt; *main* @everyone" is down &amp; out. <https://gw.example.com/dashboard/#/channels|Show>',
                  '*Resolved* The channel "&lt;!channel&gt; *main* @everyone" is down &amp; out. <https://gw.example.com/dashboard/#/channels|Show>',
                  '… and 3 further alerts: the page lists them.',
                ].join('\n'),
              },
            },
          ],
        },
      },
    ]);
  });

  test('of Slack gets sections within the limits of Block Kit', async () => {
    const { url, posts } = await startHttp();
    const deliveries = await open({ type: 'slack', url });
    await deliveries.send(message(Array.from({ length: 20 }, () => item({ text: '&<>'.repeat(300) }))));
    const blocks = posts[0]?.body['blocks'] as readonly { readonly text: { readonly text: string } }[];
    expect(blocks.length).toBeLessThanOrEqual(50);
    for (const { text } of blocks) expect(text.text.length).toBeLessThanOrEqual(3_000);
  });

  test('of Discord gets an embed that mentions nobody', async () => {
    const { url, posts } = await startHttp();
    const deliveries = await open({ type: 'discord', url });
    await deliveries.send(message(Array.from({ length: 20 }, () => item({ text: 'x'.repeat(2_000) }))));
    expect(posts[0]?.body).toMatchObject({ allowed_mentions: { parse: [] } });
    const [embed] = (posts[0]?.body['embeds'] ?? []) as readonly { readonly description: string }[];
    expect(embed?.description.length).toBeLessThanOrEqual(4_096);
  });

  test('of Teams gets an Adaptive Card', async () => {
    const { url, posts } = await startHttp();
    const deliveries = await open({ type: 'teams', url });
    await deliveries.send(message([item({ text: 'A *bold* text.' })]));
    expect(posts[0]?.body).toMatchObject({
      type: 'message',
      attachments: [
        {
          contentType: 'application/vnd.microsoft.card.adaptive',
          content: {
            type: 'AdaptiveCard',
            body: [
              { type: 'TextBlock' },
              { type: 'TextBlock', text: String.raw`Critical: A \*bold\* text.` },
            ],
            actions: [{ type: 'Action.OpenUrl', url: 'https://gw.example.com/dashboard/#/channels' }],
          },
        },
      ],
    });
  });

  test('of PagerDuty gets an event for each alert, and one that closes it', async () => {
    const { url, posts } = await startHttp();
    const deliveries = await open({ type: 'pagerduty', key: 'r'.repeat(32), url: `${url}/v2/enqueue` });
    expect(deliveries.takesOne('one')).toBe(true);
    await deliveries.send(message([item()]));
    await deliveries.send(message([item({ state: 'resolved' })]));
    expect(posts.map(({ body }) => body)).toMatchObject([
      {
        routing_key: 'r'.repeat(32),
        event_action: 'trigger',
        payload: { severity: 'critical', source: 'main', class: 'channel-down' },
        links: [{ href: 'https://gw.example.com/dashboard/#/channels' }],
      },
      { event_action: 'resolve' },
    ]);
    expect(posts[0]?.body['dedup_key']).toBe(posts[1]?.body['dedup_key']);
  });
});

interface Mail {
  readonly text: string;
  readonly isSecure: boolean;
  readonly user: string | undefined;
}

async function startSmtp(more: object): Promise<{ readonly port: number; readonly mails: Mail[] }> {
  const mails: Mail[] = [];
  const server = new SMTPServer({
    logger: false,
    onAuth: ({ username, password }, _session, done) =>
      password === 'a password of mine'
        ? done(null, { user: username })
        : done(Object.assign(new Error('wrong: a password of mine'), { responseCode: 535 })),
    onData(stream, session, done) {
      let text = '';
      stream.on('data', (piece: Buffer) => (text += piece.toString()));
      stream.on('end', () => {
        mails.push({ text, isSecure: session.secure, user: session.user as string | undefined });
        done();
      });
    },
    ...more,
  });
  // A client that refuses the certificate ends the connection in the middle of the handshake.
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { port: (server.server.address() as AddressInfo).port, mails };
}

const missing = withoutOpenssl();

describe.skipIf(missing !== undefined)('e-mail', () => {
  const authority = missing === undefined ? makeAuthority() : undefined;
  const certificate = (): { readonly cert: string; readonly key: string; readonly ca: string } => {
    const { cert, key } = authority?.issue('127.0.0.1') ?? { cert: '', key: '' };
    return { cert, key, ca: authority?.cert ?? '' };
  };
  const usual = {
    type: 'email' as const,
    host: 'localhost',
    from: 'sluice@example.com',
    to: ['ops@example.com'],
  };
  const login = { user: 'me', password: 'a password of mine' };

  test.each(['starttls', 'tls'] as const)('is sent encrypted, and with a password: %s', async (security) => {
    const { cert, key, ca } = certificate();
    const { port, mails } = await startSmtp({ cert, key, secure: security === 'tls' });
    const deliveries = await open({ ...usual, ...login, host: '127.0.0.1', port, security, ca });
    expect(
      await deliveries.send(message([item({ text: 'Zeile\r\nBcc: other@example.com' }), item()])),
    ).toBeUndefined();
    expect(mails).toMatchObject([{ isSecure: true, user: 'me' }]);
    expect(mails[0]?.text).toContain('Subject: Sluice: 2 open, 0 resolved');
    expect(mails[0]?.text.split('\r\n\r\n')[0]).not.toMatch(/bcc/i);
  });

  test('is refused where the server cannot encrypt, is not trusted, or does not know the password, without a secret in the reason', async () => {
    const { cert, key, ca } = certificate();
    const plain = await startSmtp({ disabledCommands: ['STARTTLS'], authOptional: true });
    const unencrypted = await open({ ...usual, host: '127.0.0.1', port: plain.port });
    expect(await unencrypted.send(message([item()]))).toMatch(/did not take it: E/);
    const strange = await startSmtp({ cert, key });
    const untrusted = await open({ ...usual, ...login, host: '127.0.0.1', port: strange.port });
    expect(await untrusted.send(message([item()]))).toMatch(/did not take it: E/);
    const wrong = await open({
      ...usual,
      user: 'me',
      password: 'a wrong one',
      host: '127.0.0.1',
      port: strange.port,
      ca,
    });
    const reason = await wrong.send(message([item()]));
    expect(reason).toBe('The mail server 127.0.0.1 did not take it: EAUTH 535.');
    expect([...plain.mails, ...strange.mails]).toEqual([]);
  });

  test('gives up a server that hangs', async () => {
    const { port } = await startSmtp({ authOptional: true, onConnect: () => {} });
    const deliveries = await open({ ...usual, host: '127.0.0.1', port, security: 'none' }, { timeout: 300 });
    expect(await deliveries.send(message([item()]))).toMatch(/too long|did not take it/);
  });
});
