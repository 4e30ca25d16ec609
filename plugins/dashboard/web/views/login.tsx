import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { api, ApiError } from '../parts/api.ts';
import { Field, TextField } from '../parts/fields.tsx';
import { Mark } from '../parts/icons.tsx';

/** Sentences for the codes with which the gateway leads back from a provider. */
const problems: ReadonlyMap<string, string> = new Map([
  ['unavailable', 'The sign-in provider cannot be reached. Try again shortly.'],
  ['expired', 'This sign-in took too long or was used before. Start again.'],
  ['refused', 'The sign-in was cancelled.'],
  ['invalid', 'The sign-in provider sent a response that cannot be trusted. Ask your administrator.'],
  ['email', 'Your email is not verified, or not allowed here.'],
  ['group', 'None of your groups may sign in here. Ask your administrator.'],
  ['unknown', 'There is no user for you here. Ask your administrator.'],
  ['taken', 'Your email belongs to another user here. Ask your administrator.'],
  ['disabled', 'Your user is switched off. Ask your administrator.'],
  ['failed', "The sign-in failed. The gateway's log says why."],
]);

/** The only view without a session. */
export function Login() {
  const queries = useQueryClient();
  const ways = useQuery({ queryKey: ['sign-in'], queryFn: api.signInWays, staleTime: 60_000 });
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const login = useMutation({
    mutationFn: api.login,
    meta: { quiet: true },
    onSuccess: (session) => queries.setQueryData(['session'], session),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    login.mutate({ password, email, code: code.trim() });
  };
  const needsCode = email !== '' && login.error instanceof ApiError && login.error.param === 'code';
  const asksCode = needsCode || code !== '';
  const problem = problems.get(new URLSearchParams(window.location.search).get('problem') ?? '');
  const returnTo = encodeURIComponent(`${window.location.pathname}${window.location.hash}`);
  return (
    <main className="login">
      <form className="card" onSubmit={submit}>
        <h1 className="brand">
          <Mark />
          <span>Sluice</span>
        </h1>
        {problem !== undefined && (
          <p className="problem" role="alert">
            {problem}
          </p>
        )}
        {ways.data?.providers.map(({ id, label }) => (
          <a key={id} className="button" href={`/api/admin/sign-in/${id}?returnTo=${returnTo}`}>
            {label}
          </a>
        ))}
        {ways.data?.users === true && <EmailField value={email} onChange={setEmail} />}
        <PasswordField
          isOfAdmin={email === ''}
          problem={asksCode ? undefined : login.error?.message}
          value={password}
          onChange={setPassword}
        />
        {asksCode && (
          <TextField
            label="Code"
            hint="Of your authenticator app, or a recovery code."
            problem={login.error?.message}
            autoComplete="one-time-code"
            autoFocus
            value={code}
            onChange={setCode}
          />
        )}
        <button type="submit" className="button primary" disabled={login.isPending}>
          {login.isPending ? 'Logging in…' : 'Log in'}
        </button>
      </form>
    </main>
  );
}

interface TextProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
}

function EmailField({ value, onChange }: TextProps) {
  return (
    <Field label="Email" hint="Leave it empty for the admin password.">
      {(props) => (
        <input
          {...props}
          type="email"
          autoComplete="username"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

function PasswordField({
  isOfAdmin,
  problem,
  value,
  onChange,
}: TextProps & { readonly isOfAdmin: boolean; readonly problem: string | undefined }) {
  return (
    <Field
      label={isOfAdmin ? 'Admin password' : 'Password'}
      hint={
        isOfAdmin ? 'The first start of the gateway prints it. SLUICE_ADMIN_PASSWORD sets it.' : undefined
      }
      problem={problem}
    >
      {(props) => (
        <input
          {...props}
          type="password"
          autoComplete="current-password"
          autoFocus
          required
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}
