"""Questions and answers in many languages: each language has a short answer, one of a sentence, and one of several sentences.

They answer questions about the English passages in `PASSAGES`, as a RAG system does whose users write in another language than
its documents.
"""

PASSAGES = (
    "Members may cancel their contract in writing with a notice period of three months to the end of a quarter. The yearly fee "
    "is 120 euros and is due in January; it is not refunded if a contract ends early.",
    "The library opens at 9 a.m. on weekdays and at 10 a.m. on Saturdays. Books may be kept for four weeks and renewed twice, "
    "unless another reader has reserved them. Each day after that costs 50 cents.",
)

SHORT, SENTENCE, SEVERAL = "short", "sentence", "several"
KINDS = (SHORT, SENTENCE, SEVERAL)
"""Kinds of answers, in the order in which each language below has them."""

BY_LANGUAGE: dict[str, tuple[tuple[str, str], ...]] = {
    "en": (
        ("How long is the notice period for my contract?", "Three months."),
        (
            "When does the library open on Saturdays?",
            "On Saturdays the library opens at 10 a.m., an hour later than usual.",
        ),
        (
            "May I keep a book for longer?",
            "Yes, books may be kept for four weeks. You can renew them twice, unless somebody else has reserved them. "
            "After that each day costs 50 cents.",
        ),
    ),
    "de": (
        ("Wie lange ist die Kündigungsfrist für meinen Vertrag?", "Drei Monate."),
        (
            "Wann öffnet die Bibliothek am Samstag?",
            "Am Samstag öffnet die Bibliothek um 10 Uhr, also eine Stunde später als sonst.",
        ),
        (
            "Kann ich ein Buch länger behalten?",
            "Ja, Bücher dürfen vier Wochen behalten werden. Sie können sie zweimal verlängern, wenn sie niemand anders "
            "vorgemerkt hat. Danach kostet jeder Tag 50 Cent.",
        ),
    ),
    "fr": (
        ("Quel est le délai de préavis pour mon contrat ?", "Trois mois."),
        (
            "À quelle heure ouvre la bibliothèque le samedi ?",
            "Le samedi, la bibliothèque ouvre à 10 heures, une heure plus tard que d'habitude.",
        ),
        (
            "Puis-je garder un livre plus longtemps ?",
            "Oui, les livres peuvent être gardés quatre semaines. Vous pouvez les prolonger deux fois, sauf si un "
            "autre lecteur les a réservés. Ensuite, chaque jour coûte 50 centimes.",
        ),
    ),
    "es": (
        ("¿Cuál es el plazo de preaviso de mi contrato?", "Tres meses."),
        (
            "¿A qué hora abre la biblioteca los sábados?",
            "Los sábados la biblioteca abre a las 10, una hora más tarde de lo habitual.",
        ),
        (
            "¿Puedo quedarme un libro más tiempo?",
            "Sí, los libros se pueden tener cuatro semanas. Puede renovarlos dos veces, a menos que otro lector los "
            "haya reservado. Después, cada día cuesta 50 céntimos.",
        ),
    ),
    "it": (
        ("Qual è il periodo di preavviso del mio contratto?", "Tre mesi."),
        ("A che ora apre la biblioteca il sabato?", "Il sabato la biblioteca apre alle 10, un'ora più tardi del solito."),
        (
            "Posso tenere un libro più a lungo?",
            "Sì, i libri si possono tenere per quattro settimane. Può rinnovarli due volte, a meno che un altro "
            "lettore non li abbia prenotati. Dopo, ogni giorno costa 50 centesimi.",
        ),
    ),
    "pt": (
        ("Qual é o prazo de aviso prévio do meu contrato?", "Três meses."),
        (
            "A que horas a biblioteca abre aos sábados?",
            "Aos sábados a biblioteca abre às 10 horas, uma hora mais tarde do que o normal.",
        ),
        (
            "Posso ficar com um livro por mais tempo?",
            "Sim, os livros podem ficar emprestados por quatro semanas. Você pode renová-los duas vezes, a não ser que "
            "outro leitor os tenha reservado. Depois disso, cada dia custa 50 centavos.",
        ),
    ),
    "nl": (
        ("Hoe lang is de opzegtermijn van mijn contract?", "Drie maanden."),
        (
            "Hoe laat gaat de bibliotheek op zaterdag open?",
            "Op zaterdag gaat de bibliotheek om 10 uur open, een uur later dan anders.",
        ),
        (
            "Mag ik een boek langer houden?",
            "Ja, boeken mogen vier weken worden gehouden. U kunt ze twee keer verlengen, tenzij een andere lezer ze "
            "heeft gereserveerd. Daarna kost elke dag 50 cent.",
        ),
    ),
    "sv": (
        ("Hur lång är uppsägningstiden för mitt avtal?", "Tre månader."),
        ("När öppnar biblioteket på lördagar?", "På lördagar öppnar biblioteket klockan 10, en timme senare än vanligt."),
        (
            "Får jag behålla en bok längre?",
            "Ja, böcker får behållas i fyra veckor. Du kan låna om dem två gånger, om ingen annan läsare har "
            "reserverat dem. Därefter kostar varje dag 50 öre.",
        ),
    ),
    "da": (
        ("Hvor lang er opsigelsesfristen for min kontrakt?", "Tre måneder."),
        ("Hvornår åbner biblioteket om lørdagen?", "Om lørdagen åbner biblioteket klokken 10, en time senere end ellers."),
        (
            "Må jeg beholde en bog længere?",
            "Ja, bøger må beholdes i fire uger. Du kan forny dem to gange, medmindre en anden læser har reserveret "
            "dem. Derefter koster hver dag 50 øre.",
        ),
    ),
    "no": (
        ("Hvor lang er oppsigelsestiden for kontrakten min?", "Tre måneder."),
        ("Når åpner biblioteket på lørdager?", "På lørdager åpner biblioteket klokken 10, en time senere enn vanlig."),
        (
            "Kan jeg beholde en bok lenger?",
            "Ja, bøker kan beholdes i fire uker. Du kan fornye dem to ganger, hvis ingen andre lesere har reservert "
            "dem. Etter det koster hver dag 50 øre.",
        ),
    ),
    "fi": (
        ("Kuinka pitkä sopimukseni irtisanomisaika on?", "Kolme kuukautta."),
        ("Milloin kirjasto avataan lauantaisin?", "Lauantaisin kirjasto avataan kello 10, tuntia myöhemmin kuin muulloin."),
        (
            "Voinko pitää kirjaa pidempään?",
            "Kyllä, kirjoja saa pitää neljä viikkoa. Voit uusia lainan kaksi kertaa, ellei toinen lukija ole varannut "
            "niitä. Sen jälkeen jokainen päivä maksaa 50 senttiä.",
        ),
    ),
    "pl": (
        ("Jaki jest okres wypowiedzenia mojej umowy?", "Trzy miesiące."),
        (
            "O której godzinie otwiera się biblioteka w soboty?",
            "W soboty biblioteka jest otwierana o godzinie 10, godzinę później niż zwykle.",
        ),
        (
            "Czy mogę zatrzymać książkę dłużej?",
            "Tak, książki można trzymać przez cztery tygodnie. Można je przedłużyć dwa razy, chyba że zarezerwował je "
            "inny czytelnik. Potem każdy dzień kosztuje 50 centów.",
        ),
    ),
    "cs": (
        ("Jaká je výpovědní lhůta mé smlouvy?", "Tři měsíce."),
        ("V kolik hodin otevírá knihovna v sobotu?", "V sobotu otevírá knihovna v 10 hodin, o hodinu později než obvykle."),
        (
            "Mohu si knihu nechat déle?",
            "Ano, knihy si můžete nechat čtyři týdny. Můžete je dvakrát prodloužit, pokud si je nerezervoval jiný "
            "čtenář. Potom stojí každý den 50 centů.",
        ),
    ),
    "hu": (
        ("Mennyi a szerződésem felmondási ideje?", "Három hónap."),
        ("Mikor nyit a könyvtár szombaton?", "Szombaton a könyvtár 10 órakor nyit, egy órával később, mint máskor."),
        (
            "Megtarthatok egy könyvet hosszabb ideig?",
            "Igen, a könyveket négy hétig lehet megtartani. Kétszer meghosszabbíthatja őket, kivéve ha más olvasó "
            "lefoglalta. Utána minden nap 50 centbe kerül.",
        ),
    ),
    "ro": (
        ("Care este perioada de preaviz a contractului meu?", "Trei luni."),
        (
            "La ce oră se deschide biblioteca sâmbăta?",
            "Sâmbăta biblioteca se deschide la ora 10, cu o oră mai târziu decât de obicei.",
        ),
        (
            "Pot păstra o carte mai mult timp?",
            "Da, cărțile pot fi păstrate patru săptămâni. Le puteți prelungi de două ori, dacă nu le-a rezervat alt "
            "cititor. După aceea fiecare zi costă 50 de cenți.",
        ),
    ),
    "tr": (
        ("Sözleşmemin fesih süresi ne kadar?", "Üç ay."),
        (
            "Kütüphane cumartesi günleri saat kaçta açılıyor?",
            "Kütüphane cumartesi günleri saat 10'da, her zamankinden bir saat geç açılıyor.",
        ),
        (
            "Bir kitabı daha uzun süre tutabilir miyim?",
            "Evet, kitaplar dört hafta boyunca tutulabilir. Başka bir okur ayırtmadıysa süreyi iki kez "
            "uzatabilirsiniz. Ondan sonra her gün için 50 sent ödenir.",
        ),
    ),
    "vi": (
        ("Thời hạn báo trước của hợp đồng của tôi là bao lâu?", "Ba tháng."),
        ("Thư viện mở cửa lúc mấy giờ vào thứ Bảy?", "Vào thứ Bảy thư viện mở cửa lúc 10 giờ, muộn hơn thường lệ một giờ."),
        (
            "Tôi có thể giữ sách lâu hơn không?",
            "Có, sách có thể được giữ trong bốn tuần. Bạn có thể gia hạn hai lần, trừ khi có người đọc khác đã đặt "
            "trước. Sau đó mỗi ngày tốn 50 xu.",
        ),
    ),
    "id": (
        ("Berapa lama masa pemberitahuan untuk kontrak saya?", "Tiga bulan."),
        (
            "Jam berapa perpustakaan buka pada hari Sabtu?",
            "Pada hari Sabtu perpustakaan buka pukul 10, satu jam lebih lambat dari biasanya.",
        ),
        (
            "Bolehkah saya menyimpan buku lebih lama?",
            "Ya, buku boleh dipinjam selama empat minggu. Anda dapat memperpanjangnya dua kali, kecuali ada pembaca "
            "lain yang sudah memesannya. Setelah itu setiap hari dikenakan 50 sen.",
        ),
    ),
    "ru": (
        ("Какой срок уведомления о расторжении моего договора?", "Три месяца."),
        (
            "Во сколько библиотека открывается по субботам?",
            "По субботам библиотека открывается в 10 часов, на час позже обычного.",
        ),
        (
            "Могу ли я оставить книгу дольше?",
            "Да, книги можно держать четыре недели. Их можно продлить дважды, если их не забронировал другой читатель. "
            "После этого каждый день стоит 50 центов.",
        ),
    ),
    "uk": (
        ("Який термін повідомлення про розірвання мого договору?", "Три місяці."),
        (
            "О котрій годині бібліотека відчиняється в суботу?",
            "У суботу бібліотека відчиняється о 10 годині, на годину пізніше, ніж зазвичай.",
        ),
        (
            "Чи можу я залишити книгу довше?",
            "Так, книги можна тримати чотири тижні. Їх можна подовжити двічі, якщо їх не замовив інший читач. Після "
            "цього кожен день коштує 50 центів.",
        ),
    ),
    "el": (
        ("Ποια είναι η προθεσμία καταγγελίας του συμβολαίου μου;", "Τρεις μήνες."),
        (
            "Τι ώρα ανοίγει η βιβλιοθήκη το Σάββατο;",
            "Το Σάββατο η βιβλιοθήκη ανοίγει στις 10, μία ώρα αργότερα από ό,τι συνήθως.",
        ),
        (
            "Μπορώ να κρατήσω ένα βιβλίο περισσότερο;",
            "Ναι, τα βιβλία μπορείτε να τα κρατήσετε τέσσερις εβδομάδες. Μπορείτε να τα ανανεώσετε δύο φορές, εκτός αν "
            "τα έχει κρατήσει άλλος αναγνώστης. Μετά κάθε μέρα κοστίζει 50 λεπτά.",
        ),
    ),
    "ar": (
        ("ما هي مدة الإشعار لإنهاء عقدي؟", "ثلاثة أشهر."),
        ("متى تفتح المكتبة يوم السبت؟", "تفتح المكتبة يوم السبت في الساعة العاشرة، أي بعد ساعة من الموعد المعتاد."),
        (
            "هل يمكنني الاحتفاظ بالكتاب لمدة أطول؟",
            "نعم، يمكن الاحتفاظ بالكتب لمدة أربعة أسابيع. يمكنك تمديدها مرتين ما لم يحجزها قارئ آخر. بعد ذلك يكلف كل "
            "يوم خمسين سنتًا.",
        ),
    ),
    "fa": (
        ("مهلت فسخ قرارداد من چقدر است؟", "سه ماه."),
        ("کتابخانه شنبه‌ها چه ساعتی باز می‌شود؟", "کتابخانه شنبه‌ها ساعت ده باز می‌شود، یک ساعت دیرتر از همیشه."),
        (
            "آیا می‌توانم کتاب را بیشتر نگه دارم؟",
            "بله، کتاب‌ها را می‌توان چهار هفته نگه داشت. می‌توانید آنها را دو بار تمدید کنید، مگر اینکه خواننده دیگری "
            "آنها را رزرو کرده باشد. پس از آن هر روز پنجاه سنت هزینه دارد.",
        ),
    ),
    "he": (
        ("מהי תקופת ההודעה המוקדמת בחוזה שלי?", "שלושה חודשים."),
        ("באיזו שעה נפתחת הספרייה בשבת?", "בשבת הספרייה נפתחת בשעה עשר, שעה מאוחר יותר מהרגיל."),
        (
            "האם אפשר להחזיק ספר זמן רב יותר?",
            "כן, אפשר להחזיק ספרים ארבעה שבועות. אפשר לחדש אותם פעמיים, אלא אם כן קורא אחר הזמין אותם. אחר כך כל יום "
            "עולה חמישים סנט.",
        ),
    ),
    "hi": (
        ("मेरे अनुबंध की नोटिस अवधि कितनी है?", "तीन महीने।"),
        (
            "शनिवार को पुस्तकालय कितने बजे खुलता है?",
            "शनिवार को पुस्तकालय सुबह दस बजे खुलता है, यानी सामान्य से एक घंटा बाद।",
        ),
        (
            "क्या मैं किताब को अधिक समय तक रख सकता हूँ?",
            "हाँ, किताबें चार सप्ताह तक रखी जा सकती हैं। आप उन्हें दो बार बढ़ा सकते हैं, जब तक किसी और पाठक ने उन्हें "
            "आरक्षित न किया हो। उसके बाद हर दिन के पचास सेंट लगते हैं।",
        ),
    ),
    "th": (
        ("ระยะเวลาแจ้งล่วงหน้าของสัญญาของฉันคือเท่าไร", "สามเดือน"),
        ("ห้องสมุดเปิดวันเสาร์กี่โมง", "วันเสาร์ห้องสมุดเปิดเวลา 10 นาฬิกา ช้ากว่าปกติหนึ่งชั่วโมง"),
        (
            "ฉันสามารถเก็บหนังสือไว้นานกว่านี้ได้ไหม",
            "ได้ หนังสือสามารถยืมได้สี่สัปดาห์ คุณสามารถต่ออายุได้สองครั้ง เว้นแต่มีผู้อ่านคนอื่นจองไว้ "
            "หลังจากนั้นแต่ละวันมีค่าใช้จ่าย 50 เซนต์",
        ),
    ),
    "ja": (
        ("契約の解約予告期間はどのくらいですか。", "三か月です。"),
        ("図書館は土曜日に何時に開きますか。", "土曜日は図書館がいつもより一時間遅い十時に開きます。"),
        (
            "本をもっと長く借りられますか。",
            "はい、本は四週間借りることができます。ほかの利用者が予約していなければ、二回まで延長できます。その後は一日"
            "につき五十セントかかります。",
        ),
    ),
    "ko": (
        ("제 계약의 해지 통지 기간은 얼마나 됩니까?", "세 달입니다."),
        ("도서관은 토요일 몇 시에 문을 엽니까?", "토요일에는 도서관이 평소보다 한 시간 늦은 열 시에 문을 엽니다."),
        (
            "책을 더 오래 빌릴 수 있습니까?",
            "네, 책은 사 주 동안 빌릴 수 있습니다. 다른 이용자가 예약하지 않았다면 두 번 연장할 수 있습니다. 그 후에는 "
            "하루에 오십 센트가 듭니다.",
        ),
    ),
    "zh": (
        ("我的合同的通知期是多长？", "三个月。"),
        ("图书馆星期六几点开门？", "图书馆星期六十点开门，比平时晚一个小时。"),
        (
            "我可以把书多留一段时间吗？",
            "可以，书可以借四个星期。如果没有其他读者预约，您可以续借两次。之后每天收费五十分。",
        ),
    ),
}  # fmt: skip
"""ISO 639-1 code -> (question, answer) of each kind."""
