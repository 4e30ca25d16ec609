/** Filters of sums. Their values are in the address. */
import { Field, Segments } from '../parts/fields.tsx';
import { KeyPicker } from '../parts/key-picker.tsx';
import { OwnerPicker } from '../parts/owner-picker.tsx';
import { changeQuery } from '../parts/router.ts';
import { TextFilter } from '../parts/typed.tsx';
import { zones } from '../parts/zone-time.ts';
import { groupingOf, groupings, spans, type Span } from './spend-query.ts';

const owners = ['organisation', 'team', 'member'] as const;

/** Takes the grouping, the time and the time zone, and by what the calls are narrowed. */
export function SpendFilters({ query, span }: { readonly query: URLSearchParams; readonly span: Span }) {
  const value = (name: string): string => query.get(name) ?? '';
  const set = (name: string) => (event: { readonly target: { readonly value: string } }) =>
    changeQuery({ [name]: event.target.value }, 'replace');
  const isNarrowed = [...owners, 'keyId', 'tag', 'endUser', 'model', 'channel'].some(
    (name) => value(name) !== '',
  );
  return (
    <div className="spend-filters">
      <Segments
        label="Sum by"
        options={groupings}
        value={groupingOf(query)}
        onChange={(by) => changeQuery({ by }, 'replace')}
      />
      <div className="filters" role="search" aria-label="Filter">
        <TimeFields span={span} />
        <Field label="Time zone">
          {(props) => (
            <select {...props} value={span.zone} onChange={set('zone')}>
              {!zones.includes(span.zone) && <option value={span.zone}>{span.zone}</option>}
              {zones.map((zone) => (
                <option key={zone} value={zone}>
                  {zone}
                </option>
              ))}
            </select>
          )}
        </Field>
        <details open={isNarrowed}>
          <summary>Narrow by owner, key, model …</summary>
          <div className="filters">
            {owners.map((kind) => (
              <OwnerPicker
                key={kind}
                label={{ organisation: 'Organisation', team: 'Team', member: 'Member' }[kind]}
                kinds={kind === 'member' ? ['member', 'service-account'] : [kind]}
                placeholder="All"
                value={value(kind)}
                onChange={(id) => changeQuery({ [kind]: id }, 'replace')}
              />
            ))}
            <KeyPicker
              label="API key"
              placeholder="All"
              value={value('keyId')}
              onChange={(id) => changeQuery({ keyId: id }, 'replace')}
            />
            {(
              [
                ['model', 'Model'],
                ['channel', 'Channel'],
                ['tag', 'Tag'],
                ['endUser', 'End user'],
              ] as const
            ).map(([name, label]) => (
              <TextFilter key={name} label={label} name={name} value={value(name)} />
            ))}
          </div>
        </details>
      </div>
    </div>
  );
}

/** A span of time, and where it begins and ends when those are chosen. */
function TimeFields({ span }: { readonly span: Span }) {
  return (
    <>
      <Field label="Time">
        {(props) => (
          <select
            {...props}
            value={span.name}
            onChange={({ target }) =>
              changeQuery(
                {
                  span: target.value,
                  from: target.value === 'custom' ? span.from : undefined,
                  to: target.value === 'custom' ? span.to : undefined,
                },
                'replace',
              )
            }
          >
            {spans.map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        )}
      </Field>
      {span.name === 'custom' &&
        (['from', 'to'] as const).map((name) => (
          <Field key={name} label={name === 'from' ? 'From' : 'To'}>
            {(props) => (
              <input
                {...props}
                type="date"
                required
                value={span[name]}
                onChange={({ target }) => changeQuery({ [name]: target.value }, 'replace')}
              />
            )}
          </Field>
        ))}
    </>
  );
}
