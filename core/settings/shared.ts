/** Settings of the shared store and of connections to its servers. */
import { z } from 'zod';
import { secret, secretUrl } from './secret.ts';
import { readSharedAddress } from './shared-address.ts';

const pem = z
  .string()
  .regex(
    /-----BEGIN [A-Z ]+-----/,
    'must be the text of a PEM file, not its path: readFileSync(path, "utf8")',
  );

const endpoint = z.string().regex(/^(\[[^\]]+\]|[^:\s]+):\d+$/, 'must be HOST:PORT');

/** State that several gateways share and may lose: rate windows, concurrency limits, circuit breakers. */
export const sharedSchema = z
  .strictObject({
    url: secretUrl(
      z.string().superRefine((text, context) => {
        if (/^memory:/i.test(text)) return;
        const { problem } = readSharedAddress(text);
        if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
      }),
    )
      .default('memory:')
      .describe(
        'URL of the store for state that several gateways share and may lose, such as rate windows: `memory:`, `redis://[USER:PASSWORD@]HOST:PORT[/DATABASE]`, `redis+sentinel://HOST,HOST/NAME[/DATABASE]` or `redis+cluster://HOST,HOST`. With TLS, the scheme is `rediss`, `rediss+sentinel` or `rediss+cluster`',
      ),
    username: z
      .string()
      .min(1)
      .optional()
      .describe('name of the ACL user, in place of the one in the URL. Default: the user "default"'),
    password: secret(z.string().min(1))
      .optional()
      .describe('password of the user, in place of the one in the URL'),
    sentinelUsername: z.string().min(1).optional().describe('user of the Sentinels. Default: none'),
    sentinelPassword: secret(z.string().min(1))
      .optional()
      .describe('password of the Sentinels, which is not that of the servers. Default: none'),
    tls: z
      .strictObject({
        ca: z
          .union([pem, z.array(pem).min(1)])
          .optional()
          .describe('certificates of your own authority, as PEM text. Default: those of Node'),
        cert: pem
          .optional()
          .describe('client certificate of the gateway, as PEM text, if the servers ask for one'),
        key: secret(pem).optional().describe('private key of the client certificate, as PEM text'),
        servername: z
          .string()
          .min(1)
          .optional()
          .describe('host name in the certificates of the servers. Default: the host of the URL'),
        verify: z.boolean().optional().describe('false: accepts any certificate. Default: true'),
      })
      .refine(
        ({ cert, key }) => (cert === undefined) === (key === undefined),
        'cert and key belong together: set both, or neither',
      )
      .optional()
      .describe('options of TLS, for the `rediss` schemes of `url`'),
    nodeAddressMap: z
      .record(endpoint, endpoint)
      .optional()
      .describe(
        'addresses that Sentinels or cluster nodes announce, each with the address at which the gateway reaches the node',
      ),
    whenDown: z
      .enum(['refuse', 'local'])
      .default('local')
      .describe(
        'handling of calls with limits while the store is unreachable. `refuse`: they get 503. `local`: each process counts for itself',
      ),
  })
  .prefault({});

/** Address of the shared store, and options of connections to its servers. */
export type SharedStoreSettings = Omit<z.output<typeof sharedSchema>, 'whenDown'>;
