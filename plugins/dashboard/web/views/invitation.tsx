/** View in which an invited user sets a password. */
import { useState, type FormEvent } from 'react';
import { api } from '../parts/api.ts';
import { useForm } from '../parts/form.tsx';
import { Mark } from '../parts/icons.tsx';
import { NewPasswordFields, readNewPassword, type NewPasswordDraft } from '../parts/new-password.tsx';

/** Form in which an invited user sets a password, with the token of the invitation. Leads to the login. */
export function Invitation({ token }: { readonly token: string }) {
  const [isSet, setDone] = useState(false);
  const form = useForm({
    initial: () => ({ password: '', again: '' }),
    read: readNewPassword<NewPasswordDraft>,
    save: ({ password }: NewPasswordDraft) => api.acceptInvitation(token, password),
    onSaved: () => setDone(true),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    form.submit();
  };
  return (
    <main className="login">
      <form className="card" onSubmit={submit}>
        <h1 className="brand">
          <Mark />
          <span>Sluice</span>
        </h1>
        {isSet ? (
          <>
            <p role="status">Your password is set.</p>
            <a className="button primary" href="#/overview">
              Log in
            </a>
          </>
        ) : (
          <>
            <p>Set a password for your user at this gateway.</p>
            <NewPasswordFields form={form} autoFocus />
            <button type="submit" className="button primary" disabled={form.isPending}>
              Set password
            </button>
          </>
        )}
      </form>
    </main>
  );
}
