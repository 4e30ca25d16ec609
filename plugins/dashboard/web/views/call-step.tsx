/** The last of the first steps: a call as a command, and the wait for it. */
import type { ChannelView } from '../../../admin/schemas/index.ts';
import { Copy } from '../parts/copy.tsx';
import { addressOf } from '../parts/router.ts';

/** Shows the command of a first call. */
export function CallStep({
  secret,
  channels,
}: {
  readonly secret: string | undefined;
  readonly channels: readonly ChannelView[];
}) {
  const model = channels.flatMap(({ models }) => models).find((name) => !name.includes('*')) ?? 'MODEL';
  const command = (key: string): string =>
    [
      `curl ${location.origin}/v1/chat/completions \\`,
      `  -H "authorization: Bearer ${key}" \\`,
      `  -H "content-type: application/json" \\`,
      `  -d '${JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }).replaceAll("'", String.raw`'\''`)}'`,
    ].join('\n');
  return (
    <>
      <p>
        Send this from a terminal, or use the <a href={addressOf('playground')}>playground</a>. The step is
        done as soon as the call arrives.
      </p>
      {/* The key was shown once: the page has it until it is left, and copies it without showing it. */}
      <pre className="sample">{command('$SLUICE_KEY')}</pre>
      <div className="row">
        <Copy
          text={command(secret ?? '$SLUICE_KEY')}
          label={secret === undefined ? 'Copy' : 'Copy with your key'}
        />
        <span className="row muted small" role="status">
          <span className="dot pulse" aria-hidden="true" /> Waiting for a call
        </span>
      </div>
    </>
  );
}
