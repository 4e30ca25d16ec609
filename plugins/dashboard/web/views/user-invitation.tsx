/** Shows the link of an invitation, which cannot be had again. */
import { ShownOnce } from '../parts/shown-once.tsx';

/** Shows the link at which the invited user sets a password. */
export function InvitationOnce({ token, onClose }: { readonly token: string; readonly onClose: () => void }) {
  const link = `${location.origin}${location.pathname}#/invitation/${token}`;
  return (
    <ShownOnce
      title="Send this link to the user"
      intro="It is shown only this once. Whoever has it sets the password, one time."
      value={link}
      onClose={onClose}
    />
  );
}
