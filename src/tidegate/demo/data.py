"""What the sample shop sells and who buys there, in the languages and scripts of ten countries.

Pure data: countries with names, cities and streets, then a tree of categories with one noun for
each kind of product, translations, and the sentences that orders, returns and reviews are made of.
Names are put together from common given and family names; no real person is meant.
"""

from __future__ import annotations

from typing import NamedTuple


class Country(NamedTuple):
    """A country and what its customers are called; `share` is its weight among customers."""

    code: str
    name: str
    native_name: str
    language: str
    currency: str
    tax_percent: float
    share: int
    dial: str
    given: tuple[str, ...]
    family: tuple[str, ...]
    cities: tuple[str, ...]
    streets: tuple[str, ...]
    family_first: bool = False
    joint: str = " "

    def full_name(self, given: str, family: str) -> str:
        """A full name in the order and spacing of the country."""
        parts = (family, given) if self.family_first else (given, family)
        return self.joint.join(parts)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))


COUNTRIES: tuple[Country, ...] = (
    Country(
        "US", "United States", "United States", "en", "USD", 7.5, 20, "1",
        _words("James, Mary, Aisha, Diego, Grace, Henry, Olivia, Noah, Zoë, Liam"),
        _words("Smith, Johnson, Nguyen, Garcia, Brown, O'Neil, Clark, Lopez, Young, Baker"),
        _words("Portland, Austin, Duluth, Albany, Fresno"),
        _words("Maple Street, 2nd Avenue, Lakeview Drive, Mill Road"),
    ),
    Country(
        "GB", "United Kingdom", "United Kingdom", "en", "GBP", 20.0, 9, "44",
        _words("Oliver, Amelia, Harry, Isla, Siân, George, Priya, Callum, Freya, Rhys"),
        _words("Jones, Taylor, Davies, Evans, Khan, Wright, Walker, Hughes, Green, Hall"),
        _words("Leeds, Bristol, Cardiff, Dundee, Norwich"),
        _words("High Street, Church Lane, Station Road, King's Walk"),  # codespell:ignore lane
    ),
    Country(
        "DE", "Germany", "Deutschland", "de", "EUR", 19.0, 11, "49",
        _words("Jürgen, Anneliese, Björn, Käthe, Lukas, Sören, Hannah, Günter, Mia, Jörg"),
        _words("Müller, Schäfer, Weiß, Groß, Krämer, Vogel, Böhm, Jäger, Lange, Köhler"),
        _words("Köln, München, Görlitz, Lübeck, Weißenfels"),
        _words("Hauptstraße, Gartenweg, Schloßallee, Am Mühlbach"),
    ),
    Country(
        "FR", "France", "France", "fr", "EUR", 20.0, 8, "33",
        _words("Élodie, François, Zoé, Jérôme, Chloé, Gaël, Inès, Benoît, Léa, Loïc"),
        _words("Lefèvre, Dubois, Bézier, Noël, Fournier, Garçon, Mercier, Hervé, Roux, Petit"),
        _words("Besançon, Orléans, Nîmes, Saint-Étienne, Lyon"),
        _words("rue de l'Église, avenue du Château, place Molière, quai d'Été"),
    ),
    Country(
        "ES", "Spain", "España", "es", "EUR", 21.0, 6, "34",
        _words("José, María, Íñigo, Begoña, Andrés, Lucía, Ángel, Núria, Hugo, Rocío"),
        _words("Muñoz, García, Ibáñez, Peña, Álvarez, Ortega, Núñez, Castaño, Ruiz, Gómez"),
        _words("Málaga, Cádiz, Logroño, A Coruña, León"),
        _words("calle Mayor, paseo del Río, plaza de España, camino Ñandú"),
    ),
    Country(
        "PL", "Poland", "Polska", "pl", "PLN", 23.0, 5, "48",
        _words("Łukasz, Małgorzata, Paweł, Zofia, Stanisław, Żaneta, Jędrzej, Agnieszka, Ewa, Jan"),
        _words("Wójcik, Dąbrowski, Krawczyk, Zając, Woźniak, Gołąb, Król, Sikora, Mróz, Ptak"),
        _words("Łódź, Gdańsk, Rzeszów, Białystok, Poznań"),
        _words("ulica Długa, aleja Róż, plac Wolności, ulica Źródlana"),
    ),
    Country(
        "BR", "Brazil", "Brasil", "pt", "BRL", 17.0, 7, "55",
        _words("João, Conceição, Antônio, Luíza, Vinícius, Inês, Sebastião, Beatriz, Caio, Thaís"),
        _words("Araújo, Gonçalves, Simões, Magalhães, Conceição, Lima, Assunção, Rocha, Brandão"),
        _words("São Luís, Maceió, Florianópolis, Goiânia, Belém"),
        _words("rua das Palmeiras, avenida São João, travessa do Porto, rua da Praça"),
    ),
    Country(
        "TR", "Türkiye", "Türkiye", "tr", "TRY", 20.0, 3, "90",
        _words("Çağla, İbrahim, Gülşen, Oğuz, Şebnem, Ömer, Işıl, Yiğit, Elif, Deniz"),
        _words("Yıldız, Öztürk, Çelik, Şahin, Kılıç, Doğan, Güneş, Aydın, Koç, Işık"),
        _words("İzmir, Eskişehir, Muğla, Şanlıurfa, Çanakkale"),
        _words("Gül Sokak, Atatürk Caddesi, Çınar Sokağı, Deniz Yolu"),
    ),
    Country(
        "VN", "Vietnam", "Việt Nam", "vi", "VND", 10.0, 3, "84",
        _words("Anh, Hương, Đức, Thảo, Minh, Phượng, Quốc, Tuyết, Hiếu, Ngọc"),
        _words("Nguyễn, Trần, Lê, Phạm, Hoàng, Vũ, Đặng, Bùi, Đỗ, Hồ"),
        _words("Hà Nội, Đà Nẵng, Huế, Cần Thơ, Hải Phòng"),
        _words("đường Lê Lợi, phố Huế, đường Trần Phú, ngõ Chợ"),
        True,
    ),
    Country(
        "GR", "Greece", "Ελλάδα", "el", "EUR", 24.0, 4, "30",
        _words("Γιώργος, Ελένη, Νίκος, Σοφία, Δημήτρης, Ειρήνη, Κώστας, Άννα, Θανάσης, Ζωή"),
        _words("Παπαδόπουλος, Ιωάννου, Γεωργίου, Καραγιάννης, Δήμου, Αλεξίου, Ρήγας, Βασιλείου"),
        _words("Αθήνα, Θεσσαλονίκη, Πάτρα, Ηράκλειο, Ιωάννινα"),
        _words("οδός Ερμού, λεωφόρος Κηφισίας, οδός Αθηνάς, πλατεία Ελευθερίας"),
    ),
    Country(
        "UA", "Ukraine", "Україна", "uk", "UAH", 20.0, 4, "380",
        _words("Олена, Андрій, Ірина, Тарас, Юлія, Богдан, Оксана, Євген, Софія, Марко"),
        _words("Шевчук, Коваль, Бондар, Ткач, Мельник, Гончар, Лисенко, Мороз, Зінчук, Єрмак"),
        _words("Київ, Львів, Чернівці, Полтава, Ужгород"),
        _words("вулиця Садова, проспект Миру, вулиця Франка, площа Ринок"),
    ),
    Country(
        "BG", "Bulgaria", "България", "bg", "BGN", 20.0, 2, "359",
        _words("Георги, Мария, Иван, Елена, Димитър, Цветелина, Петър, Ралица, Стоян, Йоана"),
        _words("Иванов, Петрова, Димитров, Николова, Стоянов, Тодорова, Ангелов, Колева"),
        _words("София, Пловдив, Варна, Бургас, Русе"),
        _words("улица Роза, булевард Витоша, улица Шипка, площад Независимост"),
    ),
    Country(
        "EG", "Egypt", "مصر", "ar", "EGP", 14.0, 4, "20",
        _words("أحمد, فاطمة, محمود, ليلى, يوسف, مريم, عمر, هدى, كريم, سلمى"),
        _words("حسن, إبراهيم, النجار, المصري, عبد الله, سليمان, الشريف, منصور, فؤاد, رضوان"),
        _words("القاهرة, الإسكندرية, الجيزة, أسوان, طنطا"),
        _words("شارع النيل, شارع التحرير, ميدان الأوبرا, شارع الزهور"),
    ),
    Country(
        "IL", "Israel", "ישראל", "he", "ILS", 17.0, 2, "972",
        _words("נועה, דוד, יעל, איתן, מיכל, אורי, תמר, יונתן, שירה, אבי"),
        _words("כהן, לוי, מזרחי, פרץ, ביטון, אברהם, פרידמן, גולן, שפירא, ברק"),
        _words("תל אביב, חיפה, באר שבע, נתניה, אילת"),
        _words("רחוב הרצל, שדרות רוטשילד, רחוב הגפן, דרך הים"),
    ),
    Country(
        "IN", "India", "भारत", "hi", "INR", 18.0, 8, "91",
        _words("आरव, प्रिया, रोहन, अनन्या, विक्रम, दीपिका, अर्जुन, मीरा, संजय, कविता"),
        _words("शर्मा, वर्मा, गुप्ता, पटेल, मिश्रा, सिंह, जोशी, चौधरी, त्रिपाठी, यादव"),
        _words("दिल्ली, लखनऊ, जयपुर, भोपाल, वाराणसी"),
        _words("गांधी मार्ग, स्टेशन रोड, कमल गली, नेहरू पथ"),
    ),
    Country(
        "CN", "China", "中国", "zh", "CNY", 13.0, 8, "86",
        _words("伟, 芳, 秀英, 小明, 丽华, 建国, 静, 志强, 雨桐, 浩然"),
        _words("王, 李, 张, 刘, 陈, 杨, 黄, 赵, 周, 吴"),
        _words("上海, 成都, 杭州, 西安, 昆明"),
        _words("人民路, 中山路, 解放大道, 花园街"),
        True, "",
    ),
    Country(
        "JP", "Japan", "日本", "ja", "JPY", 10.0, 6, "81",
        _words("さくら, 健太, 美咲, 翔太, 陽子, 大輔, ゆき, 直樹, 愛, 蓮"),
        _words("佐藤, 鈴木, 高橋, 田中, 渡辺, 伊藤, 山本, 中村, 小林, 加藤"),
        _words("大阪, 札幌, 福岡, 京都, 仙台"),
        _words("桜通り, 中央町, 本町, 緑が丘"),
        True, " ",
    ),
    Country(
        "KR", "South Korea", "대한민국", "ko", "KRW", 10.0, 5, "82",
        _words("민준, 서연, 지훈, 하은, 도윤, 수빈, 예준, 지우, 현우, 유진"),
        _words("김, 이, 박, 최, 정, 강, 조, 윤, 장, 임"),
        _words("서울, 부산, 대구, 인천, 광주"),
        _words("한강로, 중앙로, 벚꽃길, 시청로"),
        True, "",
    ),
)  # fmt: skip


class Kind(NamedTuple):
    """A kind of product: a leaf of the category tree. Prices are in cents."""

    branch: str
    twig: str
    noun: str
    price_low: int
    price_high: int
    weight_g: int
    names: dict[str, str]


LANGUAGES = ("de", "fr", "el", "uk", "ar", "he", "hi", "zh", "ja", "ko")


def _kind(
    branch: str, twig: str, noun: str, low: int, high: int, weight_g: int, *names: str
) -> Kind:
    return Kind(branch, twig, noun, low, high, weight_g, dict(zip(LANGUAGES, names, strict=True)))


KINDS: tuple[Kind, ...] = (
    _kind("Home", "Kitchen", "Teapot", 1800, 9500, 900,
          "Teekanne", "Théière", "Τσαγιέρα", "Чайник", "إبريق شاي", "קומקום תה", "चायदानी",
          "茶壶", "急須", "찻주전자"),
    _kind("Home", "Kitchen", "Pan", 2200, 12900, 1600,
          "Pfanne", "Poêle", "Τηγάνι", "Сковорода", "مقلاة", "מחבת", "कड़ाही",
          "平底锅", "フライパン", "프라이팬"),
    _kind("Home", "Kitchen", "Knife", 900, 18900, 240,
          "Messer", "Couteau", "Μαχαίρι", "Ніж", "سكين", "סכין", "चाकू",
          "菜刀", "包丁", "식칼"),
    _kind("Home", "Lighting", "Lamp", 2900, 24900, 2100,
          "Lampe", "Lampe", "Λάμπα", "Лампа", "مصباح", "מנורה", "दीपक",
          "台灯", "ランプ", "램프"),
    _kind("Home", "Lighting", "Lantern", 1500, 7900, 800,
          "Laterne", "Lanterne", "Φανάρι", "Ліхтар", "فانوس", "פנס", "लालटेन",
          "灯笼", "提灯", "등불"),
    _kind("Home", "Furniture", "Chair", 4900, 39900, 6200,
          "Stuhl", "Chaise", "Καρέκλα", "Стілець", "كرسي", "כיסא", "कुर्सी",
          "椅子", "椅子", "의자"),
    _kind("Home", "Furniture", "Table", 9900, 89900, 18500,
          "Tisch", "Table", "Τραπέζι", "Стіл", "طاولة", "שולחן", "मेज़",
          "桌子", "机", "탁자"),
    _kind("Home", "Furniture", "Bookshelf", 7900, 59900, 22000,
          "Bücherregal", "Bibliothèque", "Βιβλιοθήκη", "Полиця", "رف كتب", "כוננית", "अलमारी",
          "书架", "本棚", "책장"),
    _kind("Garden", "Tools", "Spade", 1900, 6900, 1900,
          "Spaten", "Bêche", "Φτυάρι", "Лопата", "مجرفة", "את חפירה", "फावड़ा",
          "铁锹", "シャベル", "삽"),
    _kind("Garden", "Tools", "Watering can", 1200, 5900, 700,
          "Gießkanne", "Arrosoir", "Ποτιστήρι", "Лійка", "إبريق سقي", "משפך", "सींचनी",
          "浇水壶", "じょうろ", "물뿌리개"),
    _kind("Garden", "Plants", "Olive tree", 2900, 29900, 9000,
          "Olivenbaum", "Olivier", "Ελιά", "Олива", "شجرة زيتون", "עץ זית", "जैतून",
          "橄榄树", "オリーブの木", "올리브나무"),
    _kind("Garden", "Plants", "Tulip bulbs", 400, 2900, 350,
          "Tulpenzwiebeln", "Bulbes de tulipe", "Τουλίπες", "Тюльпани", "أبصال التوليب",
          "פקעות צבעוני", "ट्यूलिप", "郁金香", "チューリップ", "튤립"),
    _kind("Paper", "Books", "Atlas", 1900, 12900, 1800,
          "Atlas", "Atlas", "Άτλας", "Атлас", "أطلس", "אטלס", "मानचित्र",
          "地图集", "地図帳", "지도책"),
    _kind("Paper", "Books", "Cookbook", 1400, 5900, 950,
          "Kochbuch", "Livre de cuisine", "Βιβλίο μαγειρικής", "Кулінарна книга", "كتاب طبخ",
          "ספר בישול", "पाक पुस्तक", "食谱", "料理本", "요리책"),
    _kind("Paper", "Desk", "Notebook", 300, 2900, 220,
          "Notizbuch", "Carnet", "Τετράδιο", "Зошит", "دفتر", "מחברת", "कॉपी",
          "笔记本", "ノート", "공책"),
    _kind("Paper", "Desk", "Fountain pen", 1900, 49900, 40,
          "Füllfeder", "Stylo plume", "Πένα", "Ручка", "قلم حبر", "עט נובע", "फाउंटेन पेन",
          "钢笔", "万年筆", "만년필"),
    _kind("Clothes", "Wool", "Scarf", 1900, 14900, 180,
          "Schal", "Écharpe", "Κασκόλ", "Шарф", "وشاح", "צעיף", "दुपट्टा",
          "围巾", "マフラー", "목도리"),
    _kind("Clothes", "Wool", "Sweater", 3900, 24900, 520,
          "Pullover", "Pull", "Πουλόβερ", "Светр", "سترة صوف", "סוודר", "स्वेटर",
          "毛衣", "セーター", "스웨터"),
    _kind("Clothes", "Rain", "Umbrella", 1500, 8900, 450,
          "Regenschirm", "Parapluie", "Ομπρέλα", "Парасолька", "مظلة", "מטרייה", "छाता",
          "雨伞", "傘", "우산"),
    _kind("Clothes", "Rain", "Boots", 4900, 21900, 1500,
          "Stiefel", "Bottes", "Μπότες", "Чоботи", "حذاء طويل", "מגפיים", "जूते",
          "靴子", "長靴", "장화"),
    _kind("Music", "Strings", "Ukulele", 4900, 69900, 600,
          "Ukulele", "Ukulélé", "Γιουκαλίλι", "Укулеле", "أوكوليلي", "יוקללי", "यूकुलेले",
          "尤克里里", "ウクレレ", "우쿨렐레"),
    _kind("Music", "Drums", "Tambourine", 1900, 9900, 500,
          "Tamburin", "Tambourin", "Ντέφι", "Бубон", "دف", "תוף מרים", "डफली",
          "铃鼓", "タンバリン", "탬버린"),
    _kind("Play", "Games", "Chess set", 2900, 49900, 2400,
          "Schachspiel", "Jeu d'échecs", "Σκάκι", "Шахи", "شطرنج", "שחמט", "शतरंज",
          "国际象棋", "チェス", "체스"),
    _kind("Play", "Outdoors", "Kite", 900, 7900, 300,
          "Drachen", "Cerf-volant", "Χαρταετός", "Повітряний змій", "طائرة ورقية", "עפיפון",
          "पतंग", "风筝", "凧", "연"),
)  # fmt: skip

MATERIALS = ("Oak", "Birch", "Copper", "Linen", "Cork", "Brass", "Slate", "Bamboo", "Felt", "Glass")
MAKES = (
    "No. 1", "No. 4", "No. 7", "Mini", "Grande", "Classic", "Nordic", "Atelier", "Café", "Señora",
    "Øresund", "Zürich",
)  # fmt: skip
COLORS = ("red", "blue", "green", "natural", "black", "white")
CARRIERS = ("Swift Post", "Harbor Freight Line", "Velo Courier", "Northern Parcel")
RETURN_REASONS = ("too small", "too large", "broken on arrival", "other color expected", None)
ORDER_NOTES = (
    "Please ring twice", "Geschenk 🎁", "Laisser chez la voisine", "Να αφεθεί στην πόρτα",
    "Подзвоніть заздалегідь", "من فضلك اتصل قبل الوصول", "נא להשאיר ליד הדלת",
    "कृपया फ़ोन करें", "请放在门口", "置き配でお願いします", "문 앞에 놓아 주세요", "No rush 🐢",
)  # fmt: skip

# By language: (titles for the content, titles for the unhappy, bodies).
REVIEWS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "en": (("Love it ❤️", "Just right", "Worth every cent"), ("Not for me", "Broke in a week"),
           ("It looks better than in the pictures.", "Second one I buy; the first still holds.")),
    "de": (("Wunderschön", "Sehr zufrieden 👍"), ("Leider enttäuscht", "Größe stimmt nicht"),
           ("Schöne Verarbeitung, schnelle Lieferung.", "Für den Preis völlig in Ordnung.")),
    "fr": (("Très beau", "Parfait ✨"), ("Déçu", "Arrivé abîmé"),
           ("Fidèle à la description, à offrir les yeux fermés.", "La couleur est superbe.")),
    "es": (("¡Precioso!", "Muy útil"), ("No lo compraría otra vez",),
           ("Llegó antes de lo previsto.", "El tamaño es el adecuado.")),
    "el": (("Υπέροχο", "Πολύ καλό 😊"), ("Δεν μου άρεσε",),
           ("Ήρθε γρήγορα και καλά συσκευασμένο.",)),
    "uk": (("Чудова річ", "Раджу всім 💛"), ("Не сподобалось",),
           ("Якість краща, ніж я чекала.", "Доставили за три дні.")),
    "ar": (("رائع جدا", "أنصح به"), ("لم يعجبني",), ("وصل بسرعة والجودة ممتازة.",)),
    "he": (("מקסים", "ממליצה בחום"), ("מאכזב",), ("הגיע מהר וארוז היטב.",)),
    "hi": (("बहुत सुंदर", "पैसा वसूल 🙏"), ("ठीक नहीं लगा",), ("समय पर मिला, रंग अच्छा है।",)),
    "zh": (("非常好", "很喜欢 👍"), ("有点失望",), ("质量不错，物流很快。", "和图片一样。")),
    "ja": (("とても良い", "気に入りました 🌸"), ("少し残念",), ("丁寧な梱包で届きました。",)),
    "ko": (("정말 좋아요", "추천합니다"), ("아쉬워요",), ("포장이 꼼꼼하고 배송이 빨라요.",)),
}  # fmt: skip

ROLES = ("director", "manager", "buyer", "picker", "packer", "driver", "support", "bookkeeper")
