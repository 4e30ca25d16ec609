/** The shared store: its options, and how its servers are connected to. */
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

/** State that many gateways share and may lose: rate windows, slots, health of channels. */
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
        'store of state that many gateways share and may lose, such as rate windows: `memory:`, `redis://[USER:PASSWORD@]HOST:PORT[/DATABASE]`, `redis+sentinel://HOST,HOST/NAME[/DATABASE]` or `redis+cluster://HOST,HOST`. With TLS the first word is `rediss`',
      ),
    username: z
      .string()
      .min(1)
      .optional()
      .describe(
        'user of the ACL, in place of the one in the URL. Default: none, which is the user "default"',
      ),
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
        cert: pem.optional().describe('certificate of the gateway, where the servers ask for one'),
        key: secret(pem).optional().describe('private key of that certificate'),
        servername: z
          .string()
          .min(1)
          .optional()
          .describe('name in the certificates of the servers, when it is not that of the URL'),
        verify: z.boolean().optional().describe('false accepts any certificate. Default: true'),
      })
      .refine(({ cert, key }) => (cert === undefined) === (key === undefined), 'cert and key come together')
      .optional()
      .describe('options of TLS, for the rediss forms of "url"'),
    nodeAddressMap: z
      .record(endpoint, endpoint)
      .optional()
      .describe('addresses that Sentinels or cluster nodes name, and where the gateway reaches them instead'),
    whenDown: z
      .enum(['refuse', 'local'])
      .default('local')
      .describe('calls with limits while it is gone: refused, or counted by each process for itself'),
  })
  .prefault({});

/** Where the shared store is, and how its servers are connected to. */
export type SharedStoreSettings = Omit<z.output<typeof sharedSchema>, 'whenDown'>;
