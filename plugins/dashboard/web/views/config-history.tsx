/** Changes of the run-time configuration, each with what differs, and undo. */
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import type { ConfigChanged, ConfigHistory as History } from '../../../admin/schemas/index.ts';
import { Badge } from '../parts/badges.tsx';
import { configApi } from '../parts/config-api.ts';
import { Confirm, Dialog } from '../parts/dialog.tsx';
import { Await, Empty, More } from '../parts/states.tsx';
import { ago, exactly } from '../parts/text.ts';
import { Differences } from '../parts/value-lines.tsx';

type Change = History['records'][number];

const words: Readonly<Record<Change['action'], string>> = {
  create: 'created',
  update: 'changed',
  enable: 'enabled',
  disable: 'disabled',
  delete: 'deleted',
  reorder: 'reordered',
  undo: 'undone',
};

/** Shows the changes, newest first. */
export function ConfigHistory({
  mayUndo,
  onClose,
  onChanged,
}: {
  readonly mayUndo: boolean;
  readonly onClose: () => void;
  readonly onChanged: (what: string, result: ConfigChanged) => void;
}) {
  const queries = useQueryClient();
  const [asking, setAsking] = useState<number>();
  const history = useInfiniteQuery({
    queryKey: ['config', 'history'],
    queryFn: ({ pageParam }) => configApi.history(pageParam),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page) => page.next,
  });
  const undo = useMutation({
    mutationFn: (revision: number) => configApi.undo(revision),
    onSuccess: (result, revision) => onChanged(`Change ${revision} is undone.`, result),
    onSettled: () => {
      setAsking(undefined);
      return queries.invalidateQueries({ queryKey: ['config', 'history'] });
    },
  });
  const records = history.data?.pages.flatMap((page) => page.records) ?? [];
  return (
    <>
      <Dialog title="History of the configuration" kind="sheet" onClose={onClose}>
        <Await query={history} what="the history">
          {() =>
            records.length === 0 ? (
              <Empty title="Nothing was changed yet" />
            ) : (
              <ol className="history">
                {records.map((record) => (
                  <li key={record.revision}>
                    <ChangeHead record={record}>
                      {mayUndo && (
                        <button
                          type="button"
                          className="button small"
                          aria-label={`Undo change ${record.revision}`}
                          onClick={() => setAsking(record.revision)}
                        >
                          Undo
                        </button>
                      )}
                    </ChangeHead>
                    <ChangeBody record={record} />
                  </li>
                ))}
              </ol>
            )
          }
        </Await>
        <More query={history} count={records.length} one="change" many="changes" />
      </Dialog>
      {asking !== undefined && (
        <Confirm
          title={`Undo change ${asking}?`}
          action="Undo"
          busy={undo.isPending}
          onYes={() => undo.mutate(asking)}
          onNo={() => setAsking(undefined)}
        >
          <p>What was before this change is restored. It is refused where it was changed again since.</p>
        </Confirm>
      )}
    </>
  );
}

function ChangeHead({
  record: { revision, at, actor, action },
  children,
}: {
  readonly record: Change;
  readonly children: ReactNode;
}) {
  return (
    <div className="row">
      <Badge kind={action === 'delete' ? 'bad' : 'accent'}>{words[action]}</Badge>
      <span>
        <strong>{actor === 'password' ? 'admin password' : actor}</strong>{' '}
        <span className="muted small" title={exactly(at)}>
          {ago(at)}, change {revision}
        </span>
      </span>
      <span className="aside">{children}</span>
    </div>
  );
}

function ChangeBody({ record: { action, changes, order } }: { readonly record: Change }) {
  return (
    <>
      {changes.map(({ id, before, after, changed }) => (
        <div key={id}>
          <span className="mono small">{id.replace(':', ' ')}</span>
          {action !== 'enable' && action !== 'disable' && (
            <Differences before={before} after={after} changed={changed} />
          )}
        </div>
      ))}
      {order !== undefined && (
        <p className="small">
          <del>{order.before.join(', ')}</del> → <ins>{order.after.join(', ')}</ins>
        </p>
      )}
    </>
  );
}
