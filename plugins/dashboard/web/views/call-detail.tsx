import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { UsageRecordView } from '../../../admin/schemas/index.ts';
import { api, ApiError } from '../parts/api.ts';
import { Badge, Status, Tags } from '../parts/badges.tsx';
import { Copy } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { addressOf } from '../parts/router.ts';
import { Await } from '../parts/states.tsx';
import { count, duration, exactly, money } from '../parts/text.ts';
import { Attempts, causeText } from './call-attempts.tsx';

/** Everything that is known about one call. */
export function CallDetail({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  // A call that has just ended is written down within a second or so.
  const call = useQuery({ queryKey: ['call', id], queryFn: () => api.call(id), retry: 3, retryDelay: 700 });
  return (
    <Dialog title="Call" kind="sheet" onClose={onClose}>
      <Await query={call} what="the call">
        {(record) => <Detail record={record} />}
      </Await>
    </Dialog>
  );
}

function Detail({ record }: { readonly record: UsageRecordView }) {
  const { id, at, status, code, reason, cause, ended, stream, passThrough, losses } = record;
  const facts: readonly (readonly [string, ReactNode])[] = [
    [
      'Id',
      <span key="id" className="row">
        <code>{id}</code>
        <Copy text={id} />
      </span>,
    ],
    ['Time', exactly(at)],
    ['API key', <KeyOf key="key" record={record} />],
    ...ownersOf(record),
    ['From', <code key="ip">{record.ip}</code>],
    ['Operation', record.operation],
    ['Model', named(record.model, record.upstreamModel)],
    ['Channel', record.channel ?? 'none'],
    ['Format', named(record.format, record.upstreamFormat)],
    ['Reply', `${stream ? 'stream' : 'whole'}${passThrough === true ? ', bytes passed through' : ''}`],
  ];
  return (
    <>
      <div className="row">
        <Status status={status} code={code} />
        <Badge kind={ended === 'complete' ? 'good' : ended === 'left' ? '' : 'bad'}>{endings[ended]}</Badge>
        {code !== undefined && <code>{code}</code>}
      </div>
      {(reason !== undefined || cause !== undefined) && (
        <div className="notice bad stack">
          {reason !== undefined && <p>{reason}</p>}
          {cause !== undefined && (
            <p>
              <strong>Cause:</strong> {causeText(cause)}
            </p>
          )}
        </div>
      )}
      <dl className="facts">
        {facts.map(([name, value]) => (
          <Fact key={name} name={name} value={value} />
        ))}
      </dl>
      <Timeline record={record} />
      <Tokens record={record} />
      <Attempts record={record} />
      {losses !== undefined && losses.length > 0 && (
        <section className="stack">
          <h3>Dropped fields</h3>
          <ul className="tags">
            {losses.map((loss) => (
              <li key={loss} className="tag">
                {loss}
              </li>
            ))}
          </ul>
        </section>
      )}
      <Body title="Request" text={record.request} />
      <Body title="Response" text={record.response} />
    </>
  );
}

/** The name of the call's key; a link while the key exists. */
function KeyOf({ record: { keyId, keyName } }: { readonly record: UsageRecordView }) {
  const key = useQuery({
    queryKey: ['keys', 'one', keyId],
    queryFn: () => api.key(keyId ?? ''),
    enabled: keyId !== undefined,
    retry: false,
  });
  if (keyId === undefined) return 'none';
  const isGone = key.error instanceof ApiError && key.error.status === 404;
  if (!isGone) return <a href={addressOf('keys', { key: keyId })}>{keyName ?? keyId}</a>;
  return (
    <>
      {keyName ?? keyId} <span className="muted">(deleted)</span>
    </>
  );
}

/** Whom the call belongs to, as far as that is known. */
function ownersOf(record: UsageRecordView): (readonly [string, ReactNode])[] {
  const owners = (['organisation', 'team', 'member'] as const).flatMap((kind) => {
    const id = record[kind];
    if (id === undefined) return [];
    const name = record[`${kind}Name`] ?? id;
    const title = { organisation: 'Organisation', team: 'Team', member: 'Member' }[kind];
    const link = (
      <a key={kind} href={addressOf('owners', { owner: id })}>
        {name}
      </a>
    );
    return [[title, link] as const];
  });
  return [
    ...owners,
    ...(record.endUser === undefined
      ? []
      : [['End user', <code key="user">{record.endUser}</code>] as const]),
    ...(record.tags === undefined || record.tags.length === 0
      ? []
      : [['Tags', <Tags key="tags" values={record.tags} most={20} />] as const]),
  ];
}

const endings = {
  complete: 'complete',
  error: 'failed',
  left: 'client left',
  interrupted: 'gateway was interrupted',
} as const;

const named = (name: string, upstream: string | undefined): string =>
  upstream === undefined || upstream === name ? name || 'none' : `${name} → ${upstream}`;

function Fact({ name, value }: { readonly name: string; readonly value: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

/** Bar of the time of a call: in the gateway, until the first byte, and until the last. */
function Timeline({ record: { ms, firstMs, gatewayMs } }: { readonly record: UsageRecordView }) {
  const gateway = Math.min(gatewayMs ?? 0, ms);
  const first = Math.min(Math.max(firstMs ?? ms, gateway), ms);
  const parts = [
    ['gateway', 'Gateway overhead', gateway],
    ['waiting', 'Until the first byte', first - gateway],
    ['answering', 'Answering', ms - first],
  ] as const;
  const shown = parts.filter(([, , length]) => length > 0);
  return (
    <section className="timeline" aria-label="Timeline">
      <h3>
        {duration(ms)} <span className="muted">in all</span>
      </h3>
      <div className="track" aria-hidden="true">
        {shown.map(([name, , length]) => (
          <i key={name} className={name} style={{ width: `${(length / Math.max(ms, 0.001)) * 100}%` }} />
        ))}
      </div>
      <ul className="key">
        {shown.map(([name, text, length]) => (
          <li key={name}>
            <span>
              <i className={name} />
              {text}: {duration(length)}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Tokens({ record }: { readonly record: UsageRecordView }) {
  const { input, output, cacheRead, cacheWrite, reasoning, estimated, price } = record;
  const { microDollars, chargedMicroDollars } = record;
  const rows = [
    ['Input', input],
    ['– read from a cache', cacheRead],
    ['– written to a cache', cacheWrite],
    ['Output', output],
    ['– reasoning', reasoning],
  ] as const;
  return (
    <section className="stack">
      <h3>Tokens and cost</h3>
      <div className="grid halves">
        <dl className="facts">
          {rows
            .filter(([name, value]) => value > 0 || !name.startsWith('–'))
            .map(([name, value]) => (
              <Fact key={name} name={name} value={count(value)} />
            ))}
          {estimated === true && <Fact name="Counted by" value="the gateway. The provider sent no usage." />}
        </dl>
        <dl className="facts">
          <Fact
            name="Cost"
            value={microDollars === undefined ? 'The model has no price.' : money(microDollars)}
          />
          {chargedMicroDollars !== undefined && <Fact name="Charged" value={money(chargedMicroDollars)} />}
          {Object.entries(price ?? {}).map(([name, value]) => (
            <Fact
              key={name}
              name={name === 'model' ? 'Price of' : name === 'source' ? '– from' : `– ${name}`}
              value={typeof value === 'number' ? priceOf(name, value) : <code>{plain(value)}</code>}
            />
          ))}
        </dl>
      </div>
    </section>
  );
}

/** Token prices are per million tokens. Names of other prices contain their unit: image, second, character or call. */
const priceOf = (name: string, value: number): string =>
  `$${value.toLocaleString('en', { maximumFractionDigits: 9 })}${/^per[A-Z]|^above/.test(name) ? '' : ' per million'}`;

const plain = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

function Body({ title, text }: { readonly title: string; readonly text: string | undefined }) {
  if (text === undefined) return null;
  return (
    <details>
      <summary>{title}</summary>
      <pre className="block">{pretty(text)}</pre>
    </details>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
