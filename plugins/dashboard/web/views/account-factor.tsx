/** A user's second factor: set up by a QR code, confirmed by a code, removed by another. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import type { RecoveryCodes, SecondFactorView, UserView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { Badge } from '../parts/badges.tsx';
import { Copy } from '../parts/copy.tsx';
import { TextField } from '../parts/fields.tsx';
import { FormDialog, useForm } from '../parts/form.tsx';
import { QrCode } from '../parts/qr-code.tsx';
import { ShownOnce } from '../parts/shown-once.tsx';
import { showToast } from '../parts/toasts.tsx';

/** Sets a second factor up and removes it. */
export function SecondFactor({ user }: { readonly user: UserView }) {
  const queries = useQueryClient();
  const [factor, setFactor] = useState<SecondFactorView>();
  const [isRemoving, setRemoving] = useState(false);
  const [recovery, setRecovery] = useState<RecoveryCodes>();
  const refresh = (): void => void queries.invalidateQueries({ queryKey: ['me'] });
  const start = useMutation({ mutationFn: api.addSecondFactor, onSuccess: setFactor });
  return (
    <section className="card" aria-label="Second factor">
      <header>
        <h2>Second factor</h2>
        {user.hasSecondFactor ? <Badge kind="good">on</Badge> : <Badge>off</Badge>}
      </header>
      <div className="body stack">
        <p className="muted">
          A code of an authenticator app, asked for beside the password. Sign-in providers have their own.
        </p>
        <div className="row">
          {user.hasSecondFactor ? (
            <button type="button" className="button danger" onClick={() => setRemoving(true)}>
              Remove
            </button>
          ) : (
            <button
              type="button"
              className="button"
              disabled={start.isPending}
              onClick={() => start.mutate()}
            >
              Set up
            </button>
          )}
        </div>
      </div>
      {factor !== undefined && (
        <SetUpDialog
          factor={factor}
          onClose={() => setFactor(undefined)}
          onDone={(codes) => {
            setFactor(undefined);
            setRecovery(codes);
            refresh();
          }}
        />
      )}
      {isRemoving && (
        <CodeDialog
          title="Remove the second factor?"
          action="Remove"
          danger
          send={api.removeSecondFactor}
          onClose={() => setRemoving(false)}
          onDone={() => {
            setRemoving(false);
            showToast('The second factor is removed.');
            refresh();
          }}
        >
          <p>After this you sign in with the password only. Type a code of your app, or a recovery code.</p>
        </CodeDialog>
      )}
      {recovery !== undefined && (
        <ShownOnce
          title="Keep your recovery codes"
          intro="Each of them signs you in once, when you have lost your app. They are not shown again."
          value={recovery.codes.join('\n')}
          onClose={() => setRecovery(undefined)}
        />
      )}
    </section>
  );
}

function SetUpDialog({
  factor,
  onClose,
  onDone,
}: {
  readonly factor: SecondFactorView;
  readonly onClose: () => void;
  readonly onDone: (codes: RecoveryCodes) => void;
}) {
  return (
    <CodeDialog
      title="Set up a second factor"
      action="Confirm"
      send={api.confirmSecondFactor}
      onClose={onClose}
      onDone={onDone}
    >
      <p>Scan this with an authenticator app, then type the code that the app shows.</p>
      <QrCode text={factor.uri} label="QR code for an authenticator app" />
      <div className="secret">
        <code data-secret>{factor.secret}</code>
        <Copy text={factor.secret} />
      </div>
    </CodeDialog>
  );
}

/** Asks for a code and sends it. */
function CodeDialog<Answer>({
  title,
  action,
  danger = false,
  send,
  onClose,
  onDone,
  children,
}: {
  readonly title: string;
  readonly action: string;
  readonly danger?: boolean;
  readonly send: (code: string) => Promise<Answer>;
  readonly onClose: () => void;
  readonly onDone: (answer: Answer) => void;
  readonly children: ReactNode;
}) {
  const form = useForm({
    initial: () => ({ code: '' }),
    read({ code }) {
      const typed = code.trim();
      return typed === '' ? { problems: { code: 'must not be empty' } } : { value: typed };
    },
    save: send,
    onSaved: onDone,
  });
  return (
    <FormDialog title={title} action={action} kind="narrow" danger={danger} form={form} onClose={onClose}>
      {children}
      <TextField
        label="Code"
        autoComplete="one-time-code"
        autoFocus
        value={form.draft.code}
        problem={form.problems.code}
        onChange={(code) => form.set({ code })}
      />
    </FormDialog>
  );
}
