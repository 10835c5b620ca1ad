import { useEffect } from "react";
import { useBlocker } from "react-router";

import { useText } from "../i18n";
import { ConfirmDialog } from "./ConfirmDialog";

/** Asks before the user leaves a page with edits. `isDirty` is a function, so that a page can save and leave in one step. */
export function UnsavedChanges({ isDirty }: { isDirty: () => boolean }) {
  const t = useText();
  const blocker = useBlocker(
    ({ currentLocation, nextLocation }) =>
      currentLocation.pathname !== nextLocation.pathname && isDirty(),
  );
  useEffect(() => {
    const onUnload = (event: BeforeUnloadEvent) => {
      if (isDirty()) event.preventDefault();
    };
    window.addEventListener("beforeunload", onUnload);
    return () => window.removeEventListener("beforeunload", onUnload);
  }, [isDirty]);
  if (blocker.state !== "blocked") return null;
  return (
    <ConfirmDialog
      title={t.unsaved.title}
      consequences={[t.unsaved.consequence]}
      button={t.unsaved.leave}
      isBusy={false}
      onConfirm={() => blocker.proceed()}
      onClose={() => blocker.reset()}
    />
  );
}
