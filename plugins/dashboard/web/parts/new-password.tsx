/** Fields of a new password, which is typed twice. */
import { TextField } from './fields.tsx';
import type { Form } from './form.tsx';
import type { Problems } from './limits-draft.ts';

/** A new password while it is typed. */
export interface NewPasswordDraft {
  readonly password: string;
  readonly again: string;
}

/** Returns the draft where both texts are the same. */
export function readNewPassword<Draft extends NewPasswordDraft>(
  draft: Draft,
): { readonly value: Draft } | { readonly problems: Problems<NewPasswordDraft> } {
  return draft.password === draft.again
    ? { value: draft }
    : { problems: { again: 'The two passwords differ.' } };
}

/** The two fields. Errors of the gateway that concern no field are shown at the first. */
export function NewPasswordFields({
  form: { draft, problems, refusal, set },
  autoFocus = false,
}: {
  readonly form: Pick<Form<NewPasswordDraft>, 'draft' | 'problems' | 'refusal' | 'set'>;
  readonly autoFocus?: boolean;
}) {
  return (
    <>
      <TextField
        label="New password"
        type="password"
        autoComplete="new-password"
        autoFocus={autoFocus}
        hint="At least 12 characters."
        value={draft.password}
        problem={problems.password ?? refusal}
        onChange={(password) => set({ password })}
      />
      <TextField
        label="The same again"
        type="password"
        autoComplete="new-password"
        value={draft.again}
        problem={problems.again}
        onChange={(again) => set({ again })}
      />
    </>
  );
}
