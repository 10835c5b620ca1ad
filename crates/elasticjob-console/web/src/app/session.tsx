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

import { onSessionExpired, request, setCsrfToken } from "../api/client";
import { toProblem } from "../api/problem";
import type { Role, Session } from "../api/types";

type SessionState =
  | { status: "unknown" }
  | { status: "loggedOut"; hasExpired: boolean; isUnreachable: boolean }
  | { status: "loggedIn"; session: Session };

interface SessionControl {
  state: SessionState;
  logIn: (session: Session) => void;
  logOut: () => Promise<void>;
  refresh: () => Promise<void>;
}

const Context = createContext<SessionControl | null>(null);

/** Holds the session. Without one, the login form replaces the page, and the URL stays. */
export function SessionProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [state, setState] = useState<SessionState>({ status: "unknown" });

  const logIn = useCallback((session: Session) => {
    setCsrfToken(session.csrfToken);
    setState({ status: "loggedIn", session });
  }, []);

  const refresh = useCallback(async () => {
    try {
      logIn(await request<Session>("GET", "/session"));
    } catch (error) {
      const isUnreachable = (error as { code?: string }).code !== "notAuthenticated";
      setState({ status: "loggedOut", hasExpired: false, isUnreachable });
    }
  }, [logIn]);

  // If the server could not end the session, it is still valid, and the page stays logged in.
  const logOut = useCallback(async () => {
    await request("POST", "/logout").catch((error: unknown) => {
      if (toProblem(error).code !== "notAuthenticated") throw error;
    });
    setState({ status: "loggedOut", hasExpired: false, isUnreachable: false });
    client.clear();
  }, [client]);

  useEffect(() => {
    onSessionExpired(() => {
      setState((before) =>
        before.status === "loggedIn"
          ? { status: "loggedOut", hasExpired: true, isUnreachable: false }
          : before,
      );
      client.clear();
    });
    void refresh();
  }, [refresh, client]);

  const control = useMemo(
    () => ({ state, logIn, logOut, refresh }),
    [state, logIn, logOut, refresh],
  );
  return <Context value={control}>{children}</Context>;
}

export function useSessionControl(): SessionControl {
  const control = use(Context);
  if (!control) throw new Error("SessionProvider is missing");
  return control;
}

export function useSession(): Session {
  const { state } = useSessionControl();
  if (state.status !== "loggedIn") throw new Error("no session");
  return state.session;
}

const ROLE_RANKS: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 };

export const hasRole = (role: Role | undefined, needed: Role) =>
  role !== undefined && ROLE_RANKS[role] >= ROLE_RANKS[needed];

export const isAdmin = (session: Session) => session.roles["*"] === "admin";
