/** View in which an invited user sets a password. */
import { useMutation } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { api } from '../parts/api.ts';
import { TextField } from '../parts/fields.tsx';
import { Mark } from '../parts/icons.tsx';

/** Takes the password of whoever holds the token of an invitation, and leads to the login. */
export function Invitation({ token }: { readonly token: string }) {
  const [password, setPassword] = useState('');
  const [again, setAgain] = useState('');
  const [differs, setDiffers] = useState(false);
  const accept = useMutation({
    mutationFn: () => api.acceptInvitation(token, password),
    meta: { quiet: true },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setDiffers(password !== again);
    if (password === again) accept.mutate();
  };
  return (
    <main className="login">
      <form className="card" onSubmit={submit}>
        <h1 className="brand">
          <Mark />
          <span>Sluice</span>
        </h1>
        {accept.isSuccess ? (
          <>
            <p role="status">Your password is set.</p>
            <a className="button primary" href="#/overview">
              Log in
            </a>
          </>
        ) : (
          <>
            <TextField
              label="New password"
              hint="At least 12 characters."
              problem={accept.error?.message}
              type="password"
              autoComplete="new-password"
              autoFocus
              value={password}
              onChange={setPassword}
            />
            <TextField
              label="The same again"
              problem={differs ? 'The two passwords differ.' : undefined}
              type="password"
              autoComplete="new-password"
              value={again}
              onChange={setAgain}
            />
            <button type="submit" className="button primary" disabled={accept.isPending}>
              Set password
            </button>
          </>
        )}
      </form>
    </main>
  );
}
