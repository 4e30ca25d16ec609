/** A user's own account: name, password, second factor and sessions. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import type { UserView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { TextField } from '../parts/fields.tsx';
import { Await } from '../parts/states.tsx';
import { showToast } from '../parts/toasts.tsx';
import { OwnSessions } from './account-sessions.tsx';
import { SecondFactor } from './account-factor.tsx';
import { ChangePassword } from './account-password.tsx';
import { UserFacts } from './user-detail.tsx';

/** One's own account. */
export function Account() {
  const user = useQuery({ queryKey: ['me'], queryFn: api.me });
  return (
    <>
      <header>
        <h1>Your account</h1>
      </header>
      <Await query={user} what="your account">
        {(me) => (
          <div className="grid two">
            <About user={me} />
            <ChangePassword user={me} />
            <SecondFactor user={me} />
            <OwnSessions />
          </div>
        )}
      </Await>
    </>
  );
}

function About({ user }: { readonly user: UserView }) {
  const queries = useQueryClient();
  const [name, setName] = useState(user.name);
  const save = useMutation({
    mutationFn: () => api.changeMe(name),
    meta: { quiet: true },
    onSuccess: (changed) => {
      queries.setQueryData(['me'], changed);
      setName(changed.name);
      showToast('Your name is saved.');
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <section className="card" aria-label="About you">
      <header>
        <h2>{user.email}</h2>
      </header>
      <div className="body stack">
        <form className="row end" onSubmit={submit}>
          <div className="push">
            <TextField
              label="Name"
              autoComplete="name"
              value={name}
              problem={save.error?.message}
              onChange={setName}
            />
          </div>
          <button type="submit" className="button" disabled={save.isPending || name.trim() === user.name}>
            Save name
          </button>
        </form>
        <UserFacts user={user} own />
      </div>
    </section>
  );
}
