import { useQueryClient } from "@tanstack/react-query";
import {
  createContext,
  type ReactNode,
  use,
  useCallback,
  useEffect,
  useMemo,
  useState,
} from "react";

import { ask, rememberCsrf, whenSessionIsOver } from "../api/client";
import { asProblem } from "../api/problem";
import type { Role, Session } from "../api/types";

type State =
  | { is: "unknown" }
  | { is: "out"; wasIn: boolean; isUnreachable: boolean }
  | { is: "in"; session: Session };

interface Door {
  state: State;
  enter: (session: Session) => void;
  leave: () => Promise<void>;
  look: () => Promise<void>;
}

const Context = createContext<Door | null>(null);

/** Who sits here. A session that is over shows the login, at the page where they were. */
export function SessionProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [state, setState] = useState<State>({ is: "unknown" });

  const enter = useCallback((session: Session) => {
    rememberCsrf(session.csrfToken);
    setState({ is: "in", session });
  }, []);

  const look = useCallback(async () => {
    try {
      enter(await ask<Session>("GET", "/session"));
    } catch (error) {
      const isUnreachable = (error as { code?: string }).code !== "notAuthenticated";
      setState({ is: "out", wasIn: false, isUnreachable });
    }
  }, [enter]);

  // A session that could not be ended still works: then nobody is told that it is over.
  const leave = useCallback(async () => {
    await ask("POST", "/logout").catch((error: unknown) => {
      if (asProblem(error).code !== "notAuthenticated") throw error;
    });
    setState({ is: "out", wasIn: false, isUnreachable: false });
    client.clear();
  }, [client]);

  useEffect(() => {
    whenSessionIsOver(() => {
      setState((before) =>
        before.is === "in" ? { is: "out", wasIn: true, isUnreachable: false } : before,
      );
      client.clear();
    });
    void look();
  }, [look, client]);

  const door = useMemo(() => ({ state, enter, leave, look }), [state, enter, leave, look]);
  return <Context value={door}>{children}</Context>;
}

export function useDoor(): Door {
  const door = use(Context);
  if (!door) throw new Error("there is no SessionProvider");
  return door;
}

export function useSession(): Session {
  const { state } = useDoor();
  if (state.is !== "in") throw new Error("nobody is logged in");
  return state.session;
}

const RANKS: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 };

export const reaches = (role: Role | undefined, needed: Role) =>
  role !== undefined && RANKS[role] >= RANKS[needed];

export const rules = (session: Session) => session.roles["*"] === "admin";
