import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { scopes } from '../../../admin/access/needs.ts';
import type { NewToken, TokenView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { Badge, Tags } from '../parts/badges.tsx';
import { DataTable, type Column } from '../parts/data-table.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Segments, TextField } from '../parts/fields.tsx';
import { FormDialog, useForm } from '../parts/form.tsx';
import { Icon } from '../parts/icons.tsx';
import { OwnerPicker } from '../parts/owner-picker.tsx';
import { roleNames } from '../parts/roles.ts';
import { ShownOnce } from '../parts/shown-once.tsx';
import { Await, Empty } from '../parts/states.tsx';
import { ago, exactly, toTheMinute } from '../parts/text.ts';
import { showToast } from '../parts/toasts.tsx';

interface TokenDraft {
  readonly name: string;
  readonly role: TokenView['role'];
  /** Id of the organisation to which it is restricted; empty for none. */
  readonly organisation: string;
  readonly scopes: readonly string[];
  readonly days: string;
}

/** Roles that a token may have. */
const [, ...roles] = roleNames;

const columns: readonly Column<TokenView>[] = [
  {
    id: 'name',
    title: 'Name',
    sortBy: ({ name }) => name.toLowerCase(),
    show: ({ name, suffix }) => (
      <>
        <strong className="truncate" title={name}>
          {name}
        </strong>
        <span className="sub mono">…{suffix}</span>
      </>
    ),
  },
  {
    id: 'state',
    title: 'State',
    sortBy: ({ state }) => state,
    show: ({ state }) => <Badge kind={state === 'valid' ? 'good' : 'warn'}>{state}</Badge>,
  },
  {
    id: 'role',
    title: 'Role',
    wide: true,
    sortBy: ({ role }) => role,
    show: (token) => <Role token={token} />,
  },
  { id: 'scopes', title: 'Scopes', wide: true, show: (token) => <Tags values={token.scopes} /> },
  {
    id: 'by',
    title: 'Created by',
    wide: true,
    show: ({ createdBy }) => <span className="nowrap">{createdBy.name}</span>,
  },
  {
    id: 'expires',
    title: 'Expires',
    sortBy: ({ expiresAt }) => expiresAt,
    show: ({ expiresAt }) => (
      <span className="time" title={exactly(expiresAt)}>
        {toTheMinute(expiresAt)}
      </span>
    ),
  },
  {
    id: 'used',
    title: 'Last used',
    wide: true,
    sortBy: ({ lastUsedAt }) => lastUsedAt ?? 0,
    show: ({ lastUsedAt }) => ago(lastUsedAt),
  },
];

/** Role of a token, and the organisation to which it is restricted. */
function Role({ token: { role, organisation } }: { readonly token: TokenView }) {
  const owner = useQuery({
    queryKey: ['owners', 'one', organisation],
    queryFn: () => api.owner(organisation ?? ''),
    enabled: organisation !== undefined,
    retry: false,
  });
  return (
    <>
      {roleNames.find(([name]) => name === role)?.[1]}
      {organisation !== undefined && (
        <span className="sub truncate">of {owner.data?.name ?? organisation}</span>
      )}
    </>
  );
}

/** Tokens of the admin API: made, shown once, and revoked. */
export function Tokens() {
  const queries = useQueryClient();
  const tokens = useQuery({ queryKey: ['tokens'], queryFn: api.tokens });
  const [isAdding, setIsAdding] = useState(false);
  const [value, setValue] = useState<string>();
  const [asking, setAsking] = useState<TokenView>();
  const revoke = useMutation({
    mutationFn: (token: TokenView) => api.revokeToken(token.id),
    onSuccess: (_done, token) => showToast(`${token.name} is revoked.`),
    onSettled: () => {
      setAsking(undefined);
      return queries.invalidateQueries({ queryKey: ['tokens'] });
    },
  });
  const add = (
    <button type="button" className="button primary" onClick={() => setIsAdding(true)}>
      <Icon name="plus" />
      Add token
    </button>
  );
  return (
    <>
      <header>
        <h1>Admin tokens</h1>
        <p>For programs that use the admin API. A row opens to revoke its token.</p>
        <div className="actions">{add}</div>
      </header>
      <div className="card">
        <Await query={tokens} what="the tokens">
          {({ tokens: rows }) =>
            rows.length === 0 ? (
              <Empty title="No tokens yet">{add}</Empty>
            ) : (
              <DataTable
                label="Admin tokens"
                columns={columns}
                rows={rows}
                rowId={({ id }) => id}
                onOpen={setAsking}
              />
            )
          }
        </Await>
      </div>
      {isAdding && (
        <TokenForm
          onClose={() => setIsAdding(false)}
          onMade={(made) => {
            setIsAdding(false);
            setValue(made);
            void queries.invalidateQueries({ queryKey: ['tokens'] });
          }}
        />
      )}
      {value !== undefined && (
        <ShownOnce
          title="Copy the token now"
          intro="It is shown only this once."
          value={value}
          onClose={() => setValue(undefined)}
        />
      )}
      {asking !== undefined && (
        <Confirm
          title={`Revoke ${asking.name}?`}
          action="Revoke"
          busy={revoke.isPending}
          onYes={() => revoke.mutate(asking)}
          onNo={() => setAsking(undefined)}
        >
          <p>Requests with this token are refused at once, on all gateways.</p>
          <Tags values={asking.scopes} most={50} />
        </Confirm>
      )}
    </>
  );
}

/** The form of a new token. */
function TokenForm({
  onClose,
  onMade,
}: {
  readonly onClose: () => void;
  readonly onMade: (value: string) => void;
}) {
  const form = useForm({
    initial: (): TokenDraft => ({ name: '', role: 'admin', organisation: '', scopes: [], days: '' }),
    read({ name, role, organisation, scopes: chosen, days }) {
      if (name.trim() === '') return { problems: { name: 'must not be empty' } };
      if (chosen.length === 0) return { problems: { scopes: 'Choose at least one scope.' } };
      const token = {
        name: name.trim(),
        role,
        scopes: chosen,
        ...(organisation !== '' && { organisation }),
        ...(days.trim() !== '' && { days: Number(days) }),
      };
      return { value: token as NewToken };
    },
    save: api.createToken,
    onSaved: ({ value }) => onMade(value),
    withoutProblem: () => ['role'],
  });
  const { draft, problems, set } = form;
  return (
    <FormDialog title="Add token" action="Create token" form={form} onClose={onClose}>
      <TextField
        label="Name"
        problem={problems.name}
        autoFocus
        value={draft.name}
        onChange={(name) => set({ name })}
      />
      <TextField
        label="Days until it expires"
        hint="Empty: the default of the gateway."
        inputMode="numeric"
        problem={problems.days}
        value={draft.days}
        onChange={(days) => set({ days })}
      />
      <div className="field">
        <span className="label">Role</span>
        <Segments label="Role" options={roles} value={draft.role} onChange={(role) => set({ role })} />
        <span className="hint">An auditor changes nothing, whatever its scopes.</span>
      </div>
      <OwnerPicker
        label="Organisation"
        hint="Restricts the token to it. Empty: the whole gateway, or your own organisation."
        kinds={['organisation']}
        problem={problems.organisation}
        value={draft.organisation}
        onChange={(organisation) => set({ organisation })}
      />
      <ScopeFields
        chosen={draft.scopes}
        problem={problems.scopes}
        onChange={(chosen) => set({ scopes: chosen })}
      />
    </FormDialog>
  );
}

type Scopes = TokenDraft['scopes'];

function ScopeFields({
  chosen,
  problem,
  onChange,
}: {
  readonly chosen: Scopes;
  readonly problem: string | undefined;
  readonly onChange: (chosen: Scopes) => void;
}) {
  return (
    <fieldset>
      <legend>Scopes</legend>
      {problem !== undefined && (
        <p className="bad-text small" role="alert">
          {problem}
        </p>
      )}
      <div className="grid thirds">
        {scopes.map((scope) => (
          <label key={scope} className="check">
            <input
              type="checkbox"
              checked={chosen.includes(scope)}
              onChange={({ target }) =>
                onChange(target.checked ? [...chosen, scope] : chosen.filter((one) => one !== scope))
              }
            />
            {scope}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
