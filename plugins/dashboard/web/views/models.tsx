import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { ModelView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { Badge } from '../parts/badges.tsx';
import { DataTable, type Column } from '../parts/data-table.tsx';
import { addressOf } from '../parts/router.ts';
import { isMembers } from '../parts/json-schema.ts';
import { useMay } from '../parts/may.ts';
import { pricesText, wordsOf } from '../parts/price-words.ts';
import { Await, Empty } from '../parts/states.tsx';
import { brief, count } from '../parts/text.ts';

const dollars = (value: unknown): string =>
  typeof value === 'number' ? `$${value.toLocaleString('en', { maximumFractionDigits: 6 })}` : '–';

const price = (name: string, title: string): Column<ModelView> => ({
  id: name,
  title,
  kind: 'number',
  sortBy: (model) => (typeof model.price?.[name] === 'number' ? model.price[name] : undefined),
  show: (model) =>
    model.price?.[name] === undefined ? <span className="muted">–</span> : dollars(model.price[name]),
});

/** Origins of a row, in words. */
const sourceOf = (row: Readonly<Record<string, unknown>>): string =>
  typeof row['source'] === 'string' ? row['source'] : 'config';

/** Price at one of several channels. */
const inAndOut = (row: Readonly<Record<string, unknown>> | undefined): string =>
  row === undefined ? 'no price' : `${dollars(row['input'])} → ${dollars(row['output'])}`;

/** Members of a row that have a column of their own, or are no price. */
const usual = new Set(['model', 'source', 'input', 'output', 'cacheRead', 'cacheWrite']);

const columns: readonly Column<ModelView>[] = [
  {
    id: 'id',
    title: 'Model',
    sortBy: ({ id }) => id,
    show: ({ id, reasoning, price: row }) => (
      <>
        <span className="row nowrap">
          <a href={addressOf('usage', { model: id.includes('*') ? undefined : id })} className="mono">
            {id}
          </a>
          {reasoning === true && <Badge kind="accent">reasoning</Badge>}
          {row === undefined && !id.includes('*') && <Badge kind="warn">no price</Badge>}
        </span>
        {row !== undefined && (
          <span className="sub">
            {row['model'] === id ? 'price' : `priced as ${String(row['model'])}`}, {sourceOf(row)}
          </span>
        )}
      </>
    ),
  },
  price('input', 'Input'),
  price('output', 'Output'),
  price('cacheRead', 'Cache read'),
  price('cacheWrite', 'Cache write'),
  {
    id: 'channels',
    title: 'Channels',
    sortBy: ({ channels }) => channels.length,
    show: ({ id, channels }) =>
      channels.map((channel) => (
        <span key={channel.id} className="line" title={channel.enabled ? undefined : 'Switched off'}>
          <span className={channel.enabled ? '' : 'muted'}>
            {channel.id}
            {channel.enabled ? '' : ' (off)'}
          </span>
          {channel.upstreamModel !== id && <span className="muted small"> as {channel.upstreamModel}</span>}
          {channels.length > 1 && <span className="muted small"> {inAndOut(channel.price)}</span>}
        </span>
      )),
  },
  {
    id: 'other',
    title: 'Other prices',
    show: ({ price: row = {} }) => {
      const others = Object.entries(row).filter(([name]) => !usual.has(name));
      if (others.length === 0) return <span className="muted">–</span>;
      return others.map(([name, value]) => (
        <span
          key={name}
          className="line small"
          title={typeof value === 'object' && value !== null ? pricesText({ [name]: value }) : undefined}
        >
          {Array.isArray(value)
            ? `${count(value.length)} tier${value.length === 1 ? '' : 's'} by context length`
            : isMembers(value)
              ? `${wordsOf(name)}: ${Object.keys(value).join(', ')}`
              : `${wordsOf(name)} ${typeof value === 'number' ? dollars(value) : String(value)}`}
        </span>
      ));
    },
  },
  {
    id: 'limits',
    title: 'Limits',
    sortBy: ({ inputLimit }) => inputLimit,
    show: ({ inputLimit, outputLimit }) =>
      inputLimit === undefined && outputLimit === undefined ? (
        <span className="muted">–</span>
      ) : (
        <span className="small nowrap" title="Tokens in and out">
          {inputLimit === undefined ? '?' : brief(inputLimit)} →{' '}
          {outputLimit === undefined ? '?' : brief(outputLimit)}
        </span>
      ),
  },
  {
    id: 'abilities',
    title: 'Takes and does',
    show: ({ takes = [], can = [], cannot = [] }) => {
      const known = [...takes, ...can, ...cannot.map((ability) => `no ${ability}`)];
      return known.length === 0 ? (
        <span className="muted">–</span>
      ) : (
        <span className="small" title="As far as the catalogue knows">
          {known.join(', ')}
        </span>
      );
    },
  },
];

/** Shown to users who cannot see the channels of a model. */
const withoutChannels = columns.filter(({ id }) => id !== 'channels');

/** Which models there are, who serves them, and what they cost. */
export function Models() {
  const models = useQuery({ queryKey: ['models'], queryFn: api.models });
  const seesChannels = useMay('listChannels');
  const [wanted, setWanted] = useState('');
  const shown = useMemo(
    () =>
      (models.data?.models ?? []).filter(({ id }) => id.toLowerCase().includes(wanted.trim().toLowerCase())),
    [models.data, wanted],
  );
  return (
    <>
      <header>
        <h1>Models and prices</h1>
        <p>Dollars per million tokens.</p>
        <div className="actions">
          <input
            type="search"
            aria-label="Find a model"
            placeholder="Find a model"
            value={wanted}
            onChange={({ target }) => setWanted(target.value)}
          />
        </div>
      </header>
      <div className="card">
        <Await query={models} what="the models">
          {() =>
            shown.length === 0 ? (
              <Empty title={wanted === '' ? 'No models' : 'No model has this in its name'}>
                {wanted === '' && (
                  <p>
                    {seesChannels
                      ? 'Models come from the channels in the config.'
                      : 'You see the models that your API keys may call.'}
                  </p>
                )}
              </Empty>
            ) : (
              <DataTable
                label="Models"
                stacked
                columns={seesChannels ? columns : withoutChannels}
                rows={shown}
                rowId={({ id }) => id}
              />
            )
          }
        </Await>
      </div>
    </>
  );
}
