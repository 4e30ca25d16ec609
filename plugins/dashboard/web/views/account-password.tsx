/** A user's change of its password. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import type { UserView } from '../../../admin/schemas/index.ts';
import { api, ApiError } from '../parts/api.ts';
import { TextField } from '../parts/fields.tsx';
import { say } from '../parts/toasts.tsx';

const empty = { current: '', password: '', again: '' };

/** Changes the password; the other sessions end. */
export function ChangePassword({ user }: { readonly user: UserView }) {
  const queries = useQueryClient();
  const [draft, setDraft] = useState(empty);
  const [differs, setDiffers] = useState(false);
  const save = useMutation({
    mutationFn: () => api.changePassword(draft.current, draft.password),
    meta: { quiet: true },
    onSuccess: (session) => {
      queries.setQueryData(['session'], session);
      void queries.invalidateQueries({ queryKey: ['own-sessions'] });
      setDraft(empty);
      say('Your password is changed, and your other sessions are over.');
    },
  });
  const set = (name: keyof typeof empty) => (value: string) => {
    setDiffers(false);
    save.reset();
    setDraft((before) => ({ ...before, [name]: value }));
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const isSame = draft.password === draft.again;
    setDiffers(!isSame);
    if (isSame) save.mutate();
  };
  const isOfCurrent = save.error instanceof ApiError && save.error.param === 'current';
  return (
    <section className="card" aria-label="Password">
      <header>
        <h2>Password</h2>
      </header>
      <div className="body stack">
        {user.hasPassword ? (
          <form className="stack" onSubmit={submit}>
            {/* For password managers, which keep passwords by the email. */}
            <input type="email" autoComplete="username" value={user.email} readOnly hidden />
            <TextField
              label="Current password"
              type="password"
              autoComplete="current-password"
              value={draft.current}
              problem={isOfCurrent ? save.error?.message : undefined}
              onChange={set('current')}
            />
            <div className="grid halves">
              <TextField
                label="New password"
                type="password"
                autoComplete="new-password"
                hint="At least 12 characters."
                value={draft.password}
                problem={isOfCurrent ? undefined : save.error?.message}
                onChange={set('password')}
              />
              <TextField
                label="The same again"
                type="password"
                autoComplete="new-password"
                value={draft.again}
                problem={differs ? 'The two passwords differ.' : undefined}
                onChange={set('again')}
              />
            </div>
            <div className="row">
              <button
                type="submit"
                className="button primary"
                disabled={save.isPending || draft.current === '' || draft.password === ''}
              >
                Change password
              </button>
            </div>
          </form>
        ) : (
          <p className="muted">
            You have no password here: you sign in at a sign-in provider. An administrator can send you a link
            that sets one.
          </p>
        )}
      </div>
    </section>
  );
}
