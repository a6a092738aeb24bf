(ns support.datalevin-server
  "A server of Datalevin's protocol for tests, on loopback: the library's own wire format, client
  operations and storage behind a socket, with users and what they may do.

  Datalevin's own server is in no package that can be installed here. What is copied of it are its
  rules: a database that is opened and absent is made, by a user who may make databases; the same
  right lets a user list them; names are folded by `lisp-case`; a client whose id is unknown is asked
  to log in again. One connection has one thread, and requests run one at a time."
  (:require
   [clojure.edn :as edn]
   [clojure.string :as str]
   [datalevin.buffer :as bf]
   [datalevin.command :as command]
   [datalevin.constants :as c]
   [datalevin.core :as d]
   [datalevin.db :as db]
   [datalevin.interface]
   [datalevin.protocol :as p]
   [datalevin.query.resolve :as resolve]
   [datalevin.util :as u])
  (:import
   [datalevin.db DB]
   [datalevin.storage Store]
   [java.net InetSocketAddress]
   [java.nio.channels ServerSocketChannel SocketChannel]
   [java.nio.file Files Path StandardCopyOption]
   [java.util UUID]))

(def root (first *command-line-args*))
(def users
  "Names to `{:password … :make? … :change? …}`."
  (edn/read-string (slurp (str root "/users.edn"))))

(def sessions (atom {}))
(def opened
  "Names of databases to `{:conn …}` or `{:kv …}`, with `:engine` and `:index`."
  (atom {}))
(def requests (Object.))

(defn- refuse [text & [data]] (throw (ex-info text (or data {}))))

(defn- allow [session right what]
  (when-not (get-in users [session right]) (refuse (str "Don't have permission to " what))))

(defn- place [db-name] (str root "/databases/" db-name))

(defn- known [db-name]
  (or (get @opened db-name) (refuse "Database is not open" {::reopen db-name})))

(defn- store-of [{:keys [conn kv]}] (if conn (.-store ^DB @conn) kv))

(defn- kv-of [{:keys [conn kv]}] (if conn (.-lmdb ^Store (.-store ^DB @conn)) kv))

(defn- info [{:keys [conn]}]
  (let [db @conn store (.-store ^DB db)]
    {:max-eid (:max-eid db) :max-tx (:max-tx db)
     :last-modified (datalevin.interface/last-modified store)
     :opts (dissoc (datalevin.interface/opts store) :runtime-opts)}))

(defn- open [session {:keys [db-name schema opts return-db-info?]} make]
  (let [db-name (u/lisp-case db-name)
        there? (.exists (java.io.File. ^String (place db-name)))]
    (when-not there? (allow session :make? "open database"))
    (let [opts (dissoc (or opts {}) :db-name)
          found (or (get @opened db-name) (make (place db-name) schema opts))]
      (when (and schema (:conn found)) (d/update-schema (:conn found) schema))
      (swap! opened assoc db-name found)
      (when (and return-db-info? (:conn found)) (info found)))))

(defn- transact [{:keys [conn] :as found} data simulated? with-info?]
  (let [report (if simulated? (d/with @conn data {} true) (d/transact! conn data))
        tempids (assoc (:tempids report) :max-eid (:max-eid (:db-after report)))]
    (cond-> {:tx-data (vec (:tx-data report)) :tempids tempids}
      with-info? (assoc :db-info (info found)))))

(defn- on-kv [type found args]
  (apply (ns-resolve 'datalevin.interface (symbol (name type))) (kv-of found) args))

(defn- index-options [found] (dissoc (or found {}) :client-opts))

(defn- perform [session {:keys [type args] :as message}]
  (let [[db-name & args] args
        db-name (some-> db-name u/lisp-case)
        found (when db-name (known db-name))
        indexed (fn [index]
                  (or (found index)
                      (refuse "Index is not open" {::reopen db-name ::kind (name index)})))]
    (when (and (not (:read-only? (command/properties type)))
               (not (#{:start-sampling :stop-sampling :close :close-kv :close-vecs :new-search-engine
                       :new-vector-index} type)))
      (allow session :change? "alter the database"))
    (case type
      :list-databases (do (allow session :make? "list databases")
                          (vec (.list (java.io.File. (str root "/databases")))))
      (:close :close-kv :start-sampling :stop-sampling :close-vecs) nil
      (:closed? :closed-kv?) false
      :db-info (info found)
      :schema (datalevin.interface/schema (store-of found))
      (:q :explain)
      (let [[first-given & more] args
            [given query inputs] (if (= type :explain) [first-given (first more) (second more)]
                                     [nil first-given (first more)])
            inputs (replace {:remote-db-placeholder @(:conn found)} inputs)]
        (if given (apply d/explain given query inputs) (apply d/q query inputs)))
      :pull (d/pull @(:conn found) (first args) (second args))
      :pull-many (d/pull-many @(:conn found) (first args) (second args))
      :fulltext-datoms (apply d/fulltext-datoms @(:conn found) args)
      :tx-data (transact found (first args) (last args) false)
      :tx-data+db-info (transact found (first args) (last args) true)
      :tx-data-ack (do (transact found (first args) false true) {:db-info (info found)})
      :transact-kv (do (apply d/transact-kv (kv-of found) (remove nil? args)) :transacted)
      :batch-kv (mapv (fn [[op & given]] (on-kv op found given)) (first args))
      :new-search-engine
      (swap! opened assoc-in [db-name :engine] (d/new-search-engine (kv-of found) (or (first args) {})))
      :new-vector-index
      (swap! opened assoc-in [db-name :index] (d/new-vector-index (kv-of found) (first args)))
      :add-doc (apply d/add-doc (indexed :engine) args)
      :remove-doc (apply d/remove-doc (indexed :engine) args)
      :clear-docs (d/clear-docs (indexed :engine))
      :doc-indexed? (apply d/doc-indexed? (indexed :engine) args)
      :doc-count (d/doc-count (indexed :engine))
      :search (vec (apply d/search (indexed :engine) args))
      :add-vec (apply d/add-vec (indexed :index) args)
      :remove-vec (apply d/remove-vec (indexed :index) args)
      :persist-vecs (d/force-vec-checkpoint! (indexed :index))
      :vecs-info (d/vector-index-info (indexed :index))
      :vec-indexed? (apply datalevin.interface/vec-indexed? (indexed :index) args)
      :search-vec (vec (apply d/search-vec (indexed :index) args))
      (let [method (ns-resolve 'datalevin.interface (symbol (name type)))]
        (when-not (and method (command/properties type)) (refuse (str "Unknown message type " type)))
        (if (:conn found)
          (try (apply method (store-of found) args)
               (catch IllegalArgumentException _ (apply method (kv-of found) args)))
          (apply method (:kv found) args))))))

(defn- plain [found]
  (cond
    (instance? java.util.Map found) (if (map? found) found (into {} found))
    (or (number? found) (string? found) (keyword? found) (boolean? found) (nil? found)) found
    (or (set? found) (bytes? found)) found
    (instance? java.util.Set found) (set found)
    (instance? java.util.Collection found) (vec found)
    :else (if (instance? clojure.lang.IDeref found) nil found)))

(def ^:private answered
  "Changes that have a result; of others it is an object of the library."
  #{:tx-data :tx-data+db-info :tx-data-ack :transact-kv})

(defn- answer [state {:keys [type] :as message}]
  (try
    (case type
      :authentication
      (let [{:keys [username password]} message]
        (if (= password (get-in users [username :password] ::none))
          (let [id (UUID/randomUUID)]
            (swap! sessions assoc id username)
            {:type :authentication-ok :client-id id})
          (refuse "Failed to authenticate")))
      :set-client-id (do (reset! state (:client-id message))
                         {:type :set-client-id-ok :wire-capabilities {:compression []}})
      :disconnect nil
      (if-let [session (get @sessions @state)]
        (locking requests
          {:type :command-complete
           :result
           (plain
            (case type
              :open (open session message (fn [dir schema opts] {:conn (d/create-conn dir schema opts)}))
              :open-kv (open session message (fn [dir _ opts] {:kv (d/open-kv dir opts)}))
              (let [found (perform session message)]
                (when (or (:read-only? (command/properties type)) (answered type)) found))))})
        {:type :reconnect}))
    (catch Throwable t
      (if-let [db-name (::reopen (ex-data t))]
        {:type :reopen :db-name db-name :db-type (::kind (ex-data t) "datalog")}
        {:type :error-response :message (str (ex-message t))
         :err-data (select-keys (ex-data t) [:error])}))))

(defn- with-parts
  "A message with what was sent after it, where it would be in a message of one part."
  [{:keys [type args] :as message} data]
  (assoc message :args (if (= :transact-kv type)
                         (assoc args 2 data)
                         [(first args) data (last args)])))

(defn- converse [^SocketChannel channel]
  (with-open [channel channel]
    (let [in (volatile! (bf/allocate-buffer c/+buffer-size+))
          out (volatile! (bf/allocate-buffer c/+buffer-size+))
          wire (p/default-wire-opts)
          state (atom nil)
          receive #(p/receive-ch! channel in wire nil nil)
          send #(p/write-message-growing! channel out % wire)]
      (try
        (loop []
          (when-let [message (receive)]
            (let [message (if (= :copy-in (:mode message))
                            (do (send {:type :copy-in-response})
                                (loop [data []]
                                  (let [part (receive)]
                                    (if (map? part)
                                      (with-parts message data)
                                      (recur (into data part))))))
                            message)
                  reply (answer state message)]
              (when reply (send reply) (recur)))))
        (catch Exception e
          (when (.isOpen channel) (.println System/err (str e))))))))

(defn -main []
  ;; A server's queries call built-in functions only.
  (alter-var-root #'resolve/*resolver-mode* (constantly :server-safe))
  (let [server (doto (ServerSocketChannel/open)
                 (.bind (InetSocketAddress. "127.0.0.1" (int (Integer/parseInt (second *command-line-args*))))))
        port (.getPort ^InetSocketAddress (.getLocalAddress server))]
    (.mkdirs (java.io.File. (str root "/databases")))
    (println "listens" port)
    (loop []
      (let [channel (.accept server)]
        (doto (Thread. ^Runnable #(converse channel)) (.setDaemon true) (.start)))
      (recur))))

(-main)
