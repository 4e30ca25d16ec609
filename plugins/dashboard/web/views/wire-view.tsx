/** Shows the bytes of a playground call, both ways. */
import { useState } from 'react';
import { Copy } from '../parts/copy.tsx';
import type { Answer } from '../parts/exchange.ts';
import { Segments } from '../parts/fields.tsx';
import type { WireRequest } from '../parts/wires.ts';

/** Shows the request, or what has come of its answer. */
export function WireView({
  request,
  answer,
  curl,
}: {
  readonly request: WireRequest;
  readonly answer: Answer | undefined;
  readonly curl: string;
}) {
  const [side, setSide] = useState<'request' | 'answer'>('request');
  const text =
    side === 'request'
      ? [
          `POST ${request.path}`,
          ...lines({ 'content-type': 'application/json', ...request.headers }),
          '',
          JSON.stringify(request.body, null, 2),
        ].join('\n')
      : answer === undefined
        ? 'Nothing yet.'
        : [answer.status ?? '', answer.headers, '', answer.wire].join('\n');
  return (
    <section className="card" aria-label="On the wire">
      <header>
        <h2>On the wire</h2>
        <div className="row aside">
          {side === 'request' && <Copy text={curl} label="Copy as curl" />}
          <Segments
            label="Which side"
            options={[
              ['request', 'Request'],
              ['answer', 'Answer'],
            ]}
            value={side}
            onChange={setSide}
          />
        </div>
      </header>
      <div className="body">
        <pre className="block" tabIndex={0} data-wire={side}>
          {text}
        </pre>
      </div>
    </section>
  );
}

const lines = (headers: Readonly<Record<string, string>>): string[] =>
  Object.entries(headers).map(([name, value]) => `${name}: ${value}`);

/** Returns the request for a shell, with the key left to a variable. */
export function curlOf(
  { path, headers, body }: WireRequest,
  credentials: Readonly<Record<string, string>>,
): string {
  const all = { 'content-type': 'application/json', ...headers, ...credentials };
  return [
    `curl -N '${location.origin}${path}'`,
    ...lines(all).map((line) => `-H "${line}"`),
    `-d '${JSON.stringify(body).replaceAll("'", String.raw`'\''`)}'`,
  ].join(' \\\n  ');
}
