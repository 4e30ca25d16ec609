/** The form of a user. */
import type { UserView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { useEdit } from '../parts/edit.ts';
import { Segments, TextField } from '../parts/fields.tsx';
import { FormDialog, useForm } from '../parts/form.tsx';
import { roleNames } from '../parts/roles.ts';
import { OwnerPicker } from '../parts/owner-picker.tsx';

interface UserDraft {
  readonly email: string;
  readonly name: string;
  readonly role: UserView['role'];
  readonly organisation: string;
  readonly teams: UserView['teams'];
}

const duties = {
  member: 'Sees and makes its own API keys. A team lead manages those of its team as well.',
  auditor: 'Sees everything and changes nothing, in the organisation if one is chosen.',
  admin: 'Sees and changes everything, in the organisation if one is chosen.',
} as const;

function newUser({ email, name, role, organisation, teams }: UserDraft) {
  const called = name.trim();
  return {
    role,
    teams,
    email,
    ...(called !== '' && { name: called }),
    ...(organisation !== '' && { organisation }),
  };
}

/** Returns the fields that differ from those of the user. */
function changesOf(user: UserView, { email, name, role, organisation, teams }: UserDraft) {
  const wanted = {
    role,
    teams,
    // A user without a name is called by the email, as a new one is.
    name: name.trim() === '' ? email : name.trim(),
    organisation: organisation === '' ? null : organisation,
  };
  const before = { ...user, organisation: user.organisation ?? null };
  return Object.fromEntries(
    Object.entries(wanted).filter(
      ([field, value]) => JSON.stringify(value) !== JSON.stringify(before[field as keyof typeof wanted]),
    ),
  );
}

/** Makes a user, or changes one. `onSaved` gets the token of the invitation of a new one. */
export function UserForm({
  user,
  onClose,
  onSaved,
}: {
  readonly user: UserView | undefined;
  readonly onClose: () => void;
  readonly onSaved: (user: UserView, token: string | undefined) => void;
}) {
  const edit = useEdit(user, () => api.user(user?.id ?? ''));
  const form = useForm({
    initial: (): UserDraft => ({
      email: user?.email ?? '',
      name: user?.name ?? '',
      role: user?.role ?? 'member',
      organisation: user?.organisation ?? '',
      teams: user?.teams ?? [],
    }),
    read(draft) {
      const email = draft.email.trim();
      return email === '' ? { problems: { email: 'must not be empty' } } : { value: { ...draft, email } };
    },
    async save(wanted: UserDraft) {
      if (user === undefined) {
        const made = await api.createUser(newUser(wanted));
        return { user: made.user, token: made.invitation.token };
      }
      const changes = changesOf(user, wanted);
      const saved = await edit(changes, (version) => api.updateUser(user.id, changes, version));
      return { user: saved, token: undefined };
    },
    onSaved: (saved) => onSaved(saved.user, saved.token),
    withoutProblem: () => (user === undefined ? ['role'] : ['role', 'email']),
  });
  const { draft, problems, set } = form;
  return (
    <FormDialog
      title={user === undefined ? 'Invite a user' : `Edit ${user.email}`}
      action={user === undefined ? 'Create invitation' : 'Save'}
      form={form}
      onClose={onClose}
    >
      {user === undefined && (
        <TextField
          label="Email"
          type="email"
          autoFocus
          problem={problems.email}
          value={draft.email}
          onChange={(email) => set({ email })}
        />
      )}
      <TextField label="Name" problem={problems.name} value={draft.name} onChange={(name) => set({ name })} />
      <div className="field">
        <span className="label">Role</span>
        <Segments label="Role" options={roleNames} value={draft.role} onChange={(role) => set({ role })} />
        <span className="hint">{duties[draft.role]}</span>
      </div>
      <OwnerPicker
        label="Organisation"
        kinds={['organisation']}
        problem={problems.organisation}
        value={draft.organisation}
        onChange={(organisation) => set({ organisation })}
      />
      <TeamFields teams={draft.teams} problem={problems.teams} onChange={(next) => set({ teams: next })} />
    </FormDialog>
  );
}

type Teams = UserView['teams'];

/** Teams of a user one below the other, and a field for a further one. */
function TeamFields({
  teams,
  problem,
  onChange,
}: {
  readonly teams: Teams;
  readonly problem: string | undefined;
  readonly onChange: (teams: Teams) => void;
}) {
  return (
    <>
      {teams.map(({ team, lead }, index) => (
        <div key={team} className="row">
          <OwnerPicker
            label={`Team ${index + 1}`}
            kinds={['team']}
            value={team}
            onChange={(id) => {
              if (id === team || !teams.some((one) => one.team === id))
                onChange(
                  teams.flatMap((one) => (one.team !== team ? [one] : id === '' ? [] : [{ team: id, lead }])),
                );
            }}
          />
          <label className="check">
            <input
              type="checkbox"
              checked={lead}
              onChange={({ target }) =>
                onChange(teams.map((one) => (one.team === team ? { team, lead: target.checked } : one)))
              }
            />
            Leads it
          </label>
        </div>
      ))}
      <OwnerPicker
        label="Add a team"
        kinds={['team']}
        problem={problem}
        value=""
        onChange={(team) => {
          if (team !== '' && !teams.some((one) => one.team === team))
            onChange([...teams, { team, lead: false }]);
        }}
      />
    </>
  );
}
