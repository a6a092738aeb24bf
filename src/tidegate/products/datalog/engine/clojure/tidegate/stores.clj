(ns tidegate.stores
  "The directories and remote databases that this process has open, each with a lock: readers share
  it, and a writer, or what opens and closes, has it alone."
  (:require
   [clojure.string :as str]
   [datalevin.client :as client]
   [datalevin.constants :as c]
   [datalevin.core :as d]
   [datalevin.interface :as i]
   [datalevin.kv]
   [datalevin.lmdb :as l]
   [datalevin.search :as search]
   [datalevin.util :as u]
   [datalevin.vector :as vector]
   [tidegate.schema-check :as schema-check]
   [tidegate.values :refer [refuse]])
  (:import
   [datalevin.cpp Env Info VecIdx]
   [datalevin.db DB]
   [datalevin.dtlvnative DTLV$MDB_envinfo]
   [datalevin.kv KVLMDB]
   [datalevin.storage Store]
   [java.io File]
   [java.net URI]
   [java.util.concurrent ConcurrentHashMap]
   [java.util.concurrent.locks ReentrantReadWriteLock]))

(def ^:private ^ConcurrentHashMap stores (ConcurrentHashMap.))

(defn- new-store [place]
  ;; `state` has the open `:conn`, `:kv` with its `:kv-options`, and `:indexes`; and `:seen`, the last
  ;; transaction of ours.
  {:place place
   :remote? (str/starts-with? place "dtlv://")
   :lock (ReentrantReadWriteLock. true)
   :state (atom {})})

(defn store-of [place]
  (.computeIfAbsent stores place
                    (reify java.util.function.Function (apply [_ k] (new-store k)))))

(defn absent [what text]
  (refuse :absent text {:absent what}))

(defn local-kv
  "The key-value store under a store, whatever it is open as; nil if it is closed."
  [store]
  (let [{:keys [conn kv]} @(:state store)]
    (if conn
      (let [under (.-store ^DB @conn)]
        (when (instance? Store under) (.-lmdb ^Store under)))
      kv)))

(defn- last-transaction [lmdb]
  (let [under (if (instance? KVLMDB lmdb) (.-db ^KVLMDB lmdb) lmdb)
        info (Info/create ^Env (.-env under))]
    (try (.me_last_txnid ^DTLV$MDB_envinfo (.get ^Info info))
         (finally (.close ^Info info)))))

(defn- position [store]
  (when-not (:remote? store)
    (when-let [lmdb (local-kv store)] (last-transaction lmdb))))

(defn mark-seen!
  "Remember that all transactions until now are ours, or were read."
  [store]
  (swap! (:state store) assoc :seen (position store)))

(defn- stale? [store]
  (let [{:keys [seen conn kv]} @(:state store)]
    (and (or conn kv) seen (not= seen (position store)))))

(defn- vectors-of [dir]
  (filter #(str/starts-with? (str (key %)) (str dir "/")) @l/vector-indices))

(defn- alone-with
  "Do something while nothing else uses a vector index: Datalevin stores it on a thread of its own, and
  what is freed meanwhile ends the process."
  [^datalevin.vector.VectorIndex index work]
  ;; The engine's order: the store's lock before the index's.
  (locking (l/write-txn (.-lmdb index))
    (let [lock (.writeLock ^ReentrantReadWriteLock (.-vec_lock index))]
      (.lock lock)
      (try (work) (finally (.unlock lock))))))

(defn store-vectors!
  "Store the vector indexes of a local database now. Datalevin stores them some time after a
  transaction, and one that is closed before that lacks what was added."
  [conn]
  (let [under (.-store ^DB @conn)]
    (when (instance? Store under)
      (doseq [[_ index] (vectors-of (i/env-dir (.-lmdb ^Store under)))]
        (alone-with index #(i/persist-vecs index))))))

(defn- release-vectors!
  "Free the vector indexes of a directory without writing them: each of our changes is stored at
  once, and a copy that we only read may be older than what another process has stored."
  [dir]
  (doseq [[_ index] (vectors-of dir)]
    (alone-with index
                #(when-not (i/vec-closed? index)
                   (vreset! (.-closed? ^datalevin.vector.VectorIndex index) true)
                   (VecIdx/free (.-index ^datalevin.vector.VectorIndex index)))))
  (swap! l/vector-indices
         (fn [all] (into {} (remove #(str/starts-with? (str (key %)) (str dir "/"))) all))))

(defn- close-open! [store]
  (let [{:keys [conn kv]} @(:state store)]
    (when-not (:remote? store) (release-vectors! (:place store)))
    (reset! (:state store) {})
    (when (and conn (not (d/closed? conn))) (d/close conn))
    (when (and kv (not (d/closed-kv? kv))) (d/close-kv kv))))

(defn close!
  "Close all of a store; nothing if it is closed."
  [place]
  (when-let [store (.remove stores place)]
    (let [lock (.writeLock ^ReentrantReadWriteLock (:lock store))]
      (.lock lock)
      (try (close-open! store) (finally (.unlock lock))))))

(defn close-all! []
  (doseq [place (vec (.keySet stores))]
    (try (close! place) (catch Throwable _))))

;; Opening. All of these hold the lock alone.

(defn- remote-names
  "The databases of a server; nil if the user may not list them."
  [store target]
  (let [session (client/new-client (:place store) (merge {:time-out 30000} (:client target)
                                                         {:pool-size 1}))]
    (try
      (set (client/list-databases session))
      (catch clojure.lang.ExceptionInfo e
        (when-not (str/includes? (str (ex-message e)) "permission") (throw e)))
      (finally (client/disconnect session)))))

(defn- database-name [store] (u/lisp-case (subs (.getPath (URI. (:place store))) 1)))

(defn- refuse-absent-remote
  "Refuse to open a database that a server does not have: it would make it. Only who may make one
  may list them, so for a user who may not list them the server refuses by itself."
  [store target]
  (let [names (remote-names store target)
        wanted (database-name store)]
    (when-not (or (nil? names) (contains? names wanted))
      (absent "database" (str "The server has no database `" wanted
                              "`, and a call that only reads makes nothing.")))))

(defn- check-there
  "Refuse to open a remote database that is absent, unless it may be made."
  [store target create?]
  (when (and (:remote? store) (not create?) (not-any? @(:state store) [:conn :kv]))
    (refuse-absent-remote store target)))

(defn- kv-options [target]
  (get-in target [:options :kv] {}))

(defn- local-store-of-conn [store]
  (when (:conn @(:state store)) (local-kv store)))

(defn- fits?
  "Whether the open store has the options that the target was opened with; one that has none takes
  any."
  [store target]
  (let [options (kv-options target)]
    (or (empty? options) (= options (:kv-options @(:state store))))))

(defn- open-kv! [store target]
  (let [client (:client target)
        options (merge (kv-options target) (when (seq client) {:client-opts client}))
        kv (if (seq options) (d/open-kv (:place store) options) (d/open-kv (:place store)))]
    (swap! (:state store) assoc :kv kv :kv-options (kv-options target))
    kv))

(defn- store-for!
  "The key-value store: that of the open database, or one that is open with the options of the target,
  which hold as long as it is open."
  [store target]
  (or (local-store-of-conn store)
      (do
        (when-not (fits? store target) (close-open! store))
        (:kv @(:state store)))
      (open-kv! store target)))

(defn- has-datalog? [kv]
  (let [dbis (set (i/list-dbis kv))]
    (every? dbis [c/eav c/ave c/schema])))

(defn vector-options
  "The options of the vector attributes of the database in a store, nil if there is none. Datalevin
  stores them, and opens no such database unless it is given them again."
  [kv]
  (when (has-datalog? kv)
    (i/get-dbi kv c/opts false)
    (select-keys (into {} (i/get-range kv c/opts [:all] :attr :data))
                 [:vector-opts :vector-domains])))

(defn- kept-vector-options [store target]
  (when (and (not (:remote? store)) (.exists (File. ^String (:place store) "data.mdb")))
    (vector-options (or (local-kv store) (open-kv! store target)))))

(defn- own-domain [attribute] (str/replace (subs (str attribute) 1) "/" "_"))

(defn- with-own-domains
  "Options with one for the index of each vector attribute that names other domains. Datalevin keeps a
  vector in an index named by its attribute as well, and makes that one only if it names no others:
  without this no such fact can be added."
  [options schema]
  (reduce-kv
   (fn [{:keys [vector-opts vector-domains] :as options} attribute {:db/keys [valueType] :as more}]
     (let [domains (:db.vec/domains more)
           own (own-domain attribute)
           like (or vector-opts (some #(get vector-domains %) domains))]
       (if (and (= :db.type/vec valueType) (seq domains) like (not (contains? vector-domains own)))
         (assoc-in options [:vector-domains own] (assoc like :domain own))
         options)))
   options schema))

(defn- check-vector-options
  "Refuse a vector attribute of which it is not known how long its vectors are, before anything is
  made."
  [{:keys [vector-opts vector-domains]} schema]
  (doseq [[attribute {:db/keys [valueType] :as more}] schema
          :when (= :db.type/vec valueType)
          domain (conj (vec (:db.vec/domains more)) (own-domain attribute))]
    (when-not (:dimensions (get vector-domains domain vector-opts))
      (refuse :invalid-request
              (str "The vectors of " attribute " need `:dimensions`, in opts: `:vector-opts"
                   " {:dimensions N}` for all, or `:vector-domains {\"" domain
                   "\" {:dimensions N}}`.")
              {:field "opts"}))))

(defn- kept-schema [store target]
  (when (and (not (:remote? store)) (.exists (File. ^String (:place store) "data.mdb")))
    (let [kv (or (local-kv store) (open-kv! store target))]
      (when (has-datalog? kv)
        (i/get-dbi kv c/schema false)
        (into {} (i/get-range kv c/schema [:all] :attr :data))))))

(defn- kept-options [store target client]
  (merge {} (kept-vector-options store target) (when (seq client) {:client-opts client})))

(defn- there?
  "Whether the database exists already."
  [store target]
  (if (:remote? store)
    (let [names (remote-names store target)]
      (or (nil? names) (contains? names (database-name store))))
    (some? (kept-schema store target))))

(defn- open-conn! [store target create? schema]
  (let [{:keys [conn kv]} @(:state store)
        options (get-in target [:options :database] {})
        client (:client target)
        options (merge options (when (seq client) {:client-opts client}))
        wanted? (or (seq schema) (and create? (seq options)))]
    (when (and conn wanted?) (close-open! store))
    (or (when-not wanted? conn)
        (do
          (when-not (or create? (:remote? store))
            (let [kv (or kv (open-kv! store target))]
              (when-not (has-datalog? kv)
                (absent "database"
                        "The directory holds a key-value store and no Datalog database."))))
          (let [options (merge (kept-vector-options store target) options)
                options (with-own-domains options (merge (kept-schema store target) schema))
                _ (when-not (:remote? store) (check-vector-options options schema))
                there (when (and (seq schema) (there? store target))
                        (kept-options store target client))
                _ (close-open! store)
                _ (when there
                    (let [as-is (if (seq there)
                                  (d/get-conn (:place store) nil there)
                                  (d/get-conn (:place store)))]
                      (try (schema-check/check as-is schema) (finally (d/close as-is)))))
                conn (cond
                       (seq options) (d/get-conn (:place store) schema options)
                       (seq schema)  (d/get-conn (:place store) schema)
                       :else         (d/get-conn (:place store)))]
            (swap! (:state store) assoc :conn conn)
            conn)))))

(defn- refuse-absent-index [target]
  (absent (:kind target)
          (str "The store has no "
               (if (= "search_index" (:kind target)) "search" "vector")
               " index in the domain `"
               (get-in target [:options :index :domain] c/default-domain) "`.")))

(defn- check-remote-index
  "Refuse to open an index that a remote store does not have: a server would make it."
  [kv target]
  (let [domain (get-in target [:options :index :domain] c/default-domain)
        dbi (str domain "/" (if (= "search_index" (:kind target)) c/terms c/vec-refs))]
    (when-not (some #{dbi} (i/list-dbis kv)) (refuse-absent-index target))))

(defn- open-index! [store target create?]
  (let [kv (or (local-kv store) (:kv @(:state store)) (open-kv! store target))
        options (get-in target [:options :index] {})
        key [(:kind target) options]]
    (or (get-in @(:state store) [:indexes key])
        (let [remote? (:remote? store)
              _ (when (and remote? (not create?)) (check-remote-index kv target))
              index (if (= "search_index" (:kind target))
                      (if (or create? remote?)
                        (d/new-search-engine kv options)
                        (search/open-search-engine kv options))
                      (if (or create? remote?)
                        (d/new-vector-index kv options)
                        (vector/open-vector-index kv options)))]
          (when-not index (refuse-absent-index target))
          (swap! (:state store) assoc-in [:indexes key] index)
          index))))

(defn- own-domains
  "The domains of the indexes that the Datalog database in a store keeps by itself: the default one,
  and for each attribute its own name and the domains that it names."
  [kv]
  (into #{c/default-domain}
        (mapcat (fn [[attribute properties]]
                  (cons (str/replace (subs (str attribute) 1) "/" "_")
                        (mapcat (fn [[property value]]
                                  (when (and (keyword? property)
                                             (= "domains" (name property)))
                                    value))
                                properties))))
        (i/get-range kv c/schema [:all] :attr :data)))

(defn refuse-own-index
  "Refuse to change an index that the Datalog database in the same directory keeps: what is not a
  datom in it makes its full-text search fail."
  [store target]
  (when (#{"search_index" "vector_index"} (:kind target))
    (let [kv (local-kv store)
          domain (get-in target [:options :index :domain] c/default-domain)]
      (when (and kv (has-datalog? kv) (contains? (own-domains kv) domain))
        (refuse :invalid-request
                (str "The index in the domain `" domain "` is kept by the Datalog database in this "
                     "directory and is not changed by hand. Name another `:domain`.")
                {:field "opts"})))))

(defn- find-open [store target]
  (let [{:keys [conn kv indexes]} @(:state store)]
    (case (:kind target)
      "database" conn
      "kv" (or (local-store-of-conn store) (when (fits? store target) kv))
      (get indexes [(:kind target) (get-in target [:options :index] {})]))))

(defn- open! [store target create? schema]
  (check-there store target create?)
  (let [thing (case (:kind target)
                "database" (open-conn! store target create? schema)
                "kv" (store-for! store target)
                (open-index! store target create?))]
    (mark-seen! store)
    thing))

(defn- ready [store target]
  (when-not (stale? store) (find-open store target)))

(defn- alone [store f]
  (let [lock (.writeLock ^ReentrantReadWriteLock (:lock store))]
    (.lock lock)
    (try (f) (finally (.unlock lock)))))

(defn reading
  "Call `f` with the target, opened if it is not, and opened again if another process has committed
  since."
  [store target f]
  (let [lock (.readLock ^ReentrantReadWriteLock (:lock store))]
    (loop [tries 0]
      (.lock lock)
      (let [[done? value]
            (try
              (if-let [thing (or (ready store target)
                                 (and (> tries 3) (find-open store target)))]
                [true (f thing)]
                [false nil])
              (finally (.unlock lock)))]
        (if done?
          value
          (do
            (alone store
                   (fn []
                     (when (stale? store) (close-open! store))
                     (open! store target false nil)))
            (recur (inc tries))))))))

(defn writing
  "Call `f` with the target as the only one in this store. `create?`: it may be made."
  [store target create? schema f]
  (alone store
         (fn []
           (when (stale? store) (close-open! store))
           (let [thing (or (when-not (seq schema) (find-open store target))
                           (open! store target create? schema))]
             (try (f thing)
                  (finally (mark-seen! store)))))))
