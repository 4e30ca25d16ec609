/** Sends alerts by e-mail, with the package nodemailer. */
import { requirePackage } from 'sluice';
import type { Destination } from '../options.ts';
import type { DestinationTools, OpenDestination } from './destination.ts';
import { linesOf, linkOf, titleOf, wordOf } from './text.ts';

/** Opens a mail server, which is connected to for each message. Rejects where nodemailer is missing. */
export async function openEmail(
  { host, port, security, ca, user, password, from, to }: Extract<Destination, { type: 'email' }>,
  { url: base, timeout }: DestinationTools,
): Promise<OpenDestination> {
  requirePackage('nodemailer', '10', 'send alerts by e-mail', import.meta.url);
  const { createTransport } = await import('nodemailer');
  const transport = createTransport({
    host,
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    ...(ca === undefined ? {} : { tls: { ca } }),
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
    connectionTimeout: timeout,
    greetingTimeout: timeout,
    socketTimeout: timeout,
    // Disables reading of files and URLs, whatever a message contains.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    async send(message) {
      const lines = linesOf(message, (item) => {
        const link = linkOf(item, base);
        return `${wordOf(item)}: ${item.text}${link === undefined ? '' : `\n  ${link}`}`;
      });
      await transport
        .sendMail({
          from,
          to,
          subject: titleOf(message),
          text: `${lines.join('\n\n')}\n`,
          messageId: `<${message.id}@sluice.invalid>`,
          headers: { 'auto-submitted': 'auto-generated' },
        })
        .catch((error: unknown) => {
          throw new Error(`The mail server ${host} did not take it: ${reasonOf(error)}.`, { cause: error });
        });
    },
    close: () => transport.close(),
  };
}

/** Returns the code and the status of a failure. Its words may quote what was sent. */
function reasonOf(error: unknown): string {
  const { code, responseCode } = (typeof error === 'object' && error !== null ? error : {}) as {
    readonly code?: unknown;
    readonly responseCode?: unknown;
  };
  return (
    [code, responseCode].filter((one) => typeof one === 'string' || typeof one === 'number').join(' ') ||
    'unknown'
  );
}
