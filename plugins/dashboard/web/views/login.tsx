import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { api } from '../parts/api.ts';
import { Field } from '../parts/fields.tsx';
import { Mark } from '../parts/icons.tsx';

/** The only view without a session. */
export function Login() {
  const queries = useQueryClient();
  const [password, setPassword] = useState('');
  const login = useMutation({
    mutationFn: api.login,
    meta: { quiet: true },
    onSuccess: (session) => queries.setQueryData(['session'], session),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    login.mutate(password);
  };
  return (
    <main className="login">
      <form className="card" onSubmit={submit}>
        <h1 className="brand">
          <Mark />
          <span>Sluice</span>
        </h1>
        <Field
          label="Admin password"
          hint="The first start of the gateway prints it. SLUICE_ADMIN_PASSWORD sets it."
          problem={login.error?.message}
        >
          {(props) => (
            <input
              {...props}
              type="password"
              autoComplete="current-password"
              autoFocus
              required
              value={password}
              onChange={(event) => setPassword(event.target.value)}
            />
          )}
        </Field>
        <button type="submit" className="button primary" disabled={login.isPending}>
          {login.isPending ? 'Logging in…' : 'Log in'}
        </button>
      </form>
    </main>
  );
}
