/** One entry of the configuration, and what an administrator does with it. */
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { ConfigChanged, ConfigEntryView } from '../../../admin/schemas/index.ts';
import { configApi } from '../parts/config-api.ts';
import { DetailSheet, type SheetAction } from '../parts/detail-sheet.tsx';
import { exactly } from '../parts/text.ts';
import { ValueLines } from '../parts/value-lines.tsx';
import { TestResult } from './channels.tsx';
import { EntryOrigin, EntryState, stateWords } from './config-columns.tsx';

/** Properties of the sheet of an entry. */
interface ConfigDetailProps {
  readonly entry: ConfigEntryView;
  readonly mayChange: boolean;
  /** Names of all run-time channels in their order; absent where it cannot be changed. */
  readonly order: readonly string[] | undefined;
  readonly revision: number;
  readonly onClose: () => void;
  readonly onEdit: () => void;
  readonly onChanged: (what: string, result: ConfigChanged) => void;
  /** Called when a change was refused, because another change may have come first. */
  readonly onFailed: () => void;
}

/** Shows an entry and changes it. */
export function ConfigDetail({
  entry,
  mayChange,
  order,
  revision,
  onClose,
  onEdit,
  onChanged,
  onFailed,
}: ConfigDetailProps) {
  const { kind, name, origin, state, version = 0 } = entry;
  const [asking, setAsking] = useState<string>();
  const change = useMutation({
    mutationFn: ({ run }: { readonly what: string; readonly run: () => Promise<ConfigChanged> }) => run(),
    onSuccess: (result, { what }) => onChanged(what, result),
    onError: onFailed,
    onSettled: () => setAsking(undefined),
  });
  const isEditable = mayChange && origin === 'run-time';
  const turn = (on: boolean) => ({
    name: on ? 'Enable' : 'Disable',
    run: () =>
      change.mutate({
        what: `${name} is ${on ? 'enabled' : 'disabled'}.`,
        run: () => configApi.setEnabled(entry, version, on),
      }),
  });
  const actions: readonly SheetAction[] = [
    {
      name: 'Delete',
      kind: 'danger',
      ask: <p>The gateway no longer uses it. The history keeps it, so that this can be undone.</p>,
      run: () =>
        change.mutate({
          what: `${name} is deleted.`,
          run: async () => {
            const result = await configApi.remove(entry, version);
            onClose();
            return result;
          },
        }),
    },
    ...(state === 'shadowed' || state === 'inactive' ? [] : [turn(state === 'disabled')]),
    { name: 'Edit', kind: 'primary', run: onEdit },
  ];
  return (
    <DetailSheet
      title={name}
      actions={isEditable ? actions : []}
      busy={change.isPending}
      asking={asking}
      onAsk={setAsking}
      onClose={onClose}
    >
      <Entry entry={entry} />
      {isEditable && kind === 'channel' && (
        <ChannelActions
          entry={entry}
          order={order}
          busy={change.isPending}
          onMove={(names) =>
            change.mutate({
              what: `${name} is number ${names.indexOf(name) + 1} of the run-time channels.`,
              run: () => configApi.order(names, revision),
            })
          }
        />
      )}
    </DetailSheet>
  );
}

/** Details of an entry, and its value. */
function Entry({ entry }: { readonly entry: ConfigEntryView }) {
  const { origin, state, version = 0, value, problem, place } = entry;
  return (
    <>
      {problem !== undefined && (
        <p className="notice bad" role="alert">
          <span>
            The gateway leaves it out: {problem.option !== undefined && <code>{problem.option}</code>}{' '}
            {problem.message}
          </span>
        </p>
      )}
      {stateWords[state] !== undefined && <p className="notice warn">{stateWords[state]}</p>}
      <dl className="facts">
        <dt>State</dt>
        <dd>
          <EntryState state={state} />
        </dd>
        <dt>From</dt>
        <dd>
          <EntryOrigin origin={origin} place={place} />
        </dd>
        {place !== undefined && (
          <>
            <dt>Stands in</dt>
            <dd className="mono">{place}</dd>
          </>
        )}
        {entry.updatedAt !== undefined && (
          <>
            <dt>Changed</dt>
            <dd>
              {exactly(entry.updatedAt)}, version {version}
            </dd>
          </>
        )}
      </dl>
      {origin === 'file' && <p className="muted small">It is locked here, and changed in the config file.</p>}
      <h3>Value</h3>
      {value === undefined ? (
        <p className="muted">It was sealed with another secret, and cannot be opened. Give a new value.</p>
      ) : (
        <ValueLines value={value} />
      )}
    </>
  );
}

/** Tests a channel, and moves it among the others where `order` names them. */
function ChannelActions({
  entry: { name, value },
  order = [],
  busy,
  onMove,
}: {
  readonly entry: ConfigEntryView;
  readonly order: readonly string[] | undefined;
  readonly busy: boolean;
  readonly onMove: (names: readonly string[]) => void;
}) {
  const test = useMutation({ mutationFn: () => configApi.test(name, value, '') });
  return (
    <>
      <div className="row">
        <button
          type="button"
          className="button small"
          disabled={test.isPending}
          onClick={() => test.mutate()}
        >
          {test.isPending ? 'Testing…' : 'Test'}
        </button>
        {order.length > 1 && <Moves name={name} order={order} busy={busy} onMove={onMove} />}
      </div>
      {test.data !== undefined && <TestResult result={test.data} />}
    </>
  );
}

/** Moves a channel among the others. */
function Moves({
  name,
  order,
  busy,
  onMove,
}: {
  readonly name: string;
  readonly order: readonly string[];
  readonly busy: boolean;
  readonly onMove: (names: readonly string[]) => void;
}) {
  const place = order.indexOf(name);
  const move = (to: number): void => onMove(order.toSpliced(place, 1).toSpliced(to, 0, name));
  return (
    <>
      <button
        type="button"
        className="button small"
        disabled={busy || place <= 0}
        onClick={() => move(place - 1)}
      >
        Move up
      </button>
      <button
        type="button"
        className="button small"
        disabled={busy || place === order.length - 1}
        onClick={() => move(place + 1)}
      >
        Move down
      </button>
      <span className="muted small">
        {place + 1} of {order.length} run-time channels
      </span>
    </>
  );
}
