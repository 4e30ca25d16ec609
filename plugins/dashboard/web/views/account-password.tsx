/** A user's change of its password. */
import { useQueryClient } from '@tanstack/react-query';
import type { FormEvent } from 'react';
import type { UserView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { TextField } from '../parts/fields.tsx';
import { useForm, type Form } from '../parts/form.tsx';
import { NewPasswordFields, readNewPassword } from '../parts/new-password.tsx';
import { showToast } from '../parts/toasts.tsx';

const empty = { current: '', password: '', again: '' };

/** Changes the password; the other sessions end. */
export function ChangePassword({ user }: { readonly user: UserView }) {
  const queries = useQueryClient();
  const form: Form<typeof empty> = useForm({
    initial: () => empty,
    read: readNewPassword<typeof empty>,
    save: ({ current, password }: typeof empty) => api.changePassword(current, password),
    onSaved(session) {
      queries.setQueryData(['session'], session);
      void queries.invalidateQueries({ queryKey: ['own-sessions'] });
      form.set(empty);
      showToast('Your password is changed, and your other sessions are over.');
    },
  });
  const { draft, problems, set } = form;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    form.submit();
  };
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
              problem={problems.current}
              onChange={(current) => set({ current })}
            />
            <div className="grid halves">
              <NewPasswordFields form={form} />
            </div>
            <div className="row">
              <button
                type="submit"
                className="button primary"
                disabled={form.isPending || draft.current === '' || draft.password === ''}
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
